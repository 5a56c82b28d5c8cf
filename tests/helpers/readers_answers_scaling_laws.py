"""Answers to the exercises of the chapter `scaling_laws` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def split_by(six=6.0, balance=lambda a, p, b, q: a * p / b / q, root=lambda p, q: 1 / (p + q), share=None, second=None):
    """The two columns of a reader who takes some step otherwise."""

    def split(work, size_factor, size_power, text_factor, text_power):
        given = size_factor, size_power, text_factor, text_power
        power = share or (lambda p, q: q / (p + q))
        size = balance(*given) ** root(size_power, text_power) * (work / six) ** power(size_power, text_power)
        return np.array([size, (second or (lambda size, work: work / six / size))(size, work)]).T

    return split


def misfit_by(
    ratio=lambda losses, expected: np.log(expected / losses), inner=None, outer=None, total=np.sum, turn=False
):
    """The sum of a reader who takes some step otherwise."""

    def misfit(losses, expected, threshold):
        off = np.abs(ratio(losses, expected))
        small = (inner or (lambda off: off * off / 2))(off)
        large = (outer or (lambda off, at: at * off - at * at / 2))(off, threshold)
        return total(np.where((off > threshold) == turn, small, large))

    return misfit


SPLITS = [
    (split_by(six=1.0), "six operations"),
    (split_by(six=1 / 6), "multiply the work by six"),
    (split_by(balance=lambda a, p, b, q: a / b), "the powers are missing"),
    (split_by(balance=lambda a, p, b, q: b * q / (a * p)), "turned round"),
    (split_by(root=lambda p, q: 1), "no root"),
    (split_by(share=lambda p, q: p / (p + q)), "the one of the size"),
    (split_by(share=lambda p, q: 1 / 2), "root of the work"),
    (split_by(second=lambda size, work: size), "no tokens"),
]
MISFITS = [
    (misfit_by(ratio=np.subtract), "the logarithms are missing"),
    (misfit_by(inner=lambda off: off**2), "the half is missing"),
    (misfit_by(outer=lambda off, at: at * off), "jumps"),
    (misfit_by(outer=lambda off, at: off - at / 2), "do not multiply by it"),
    (misfit_by(outer=lambda off, at: off**2 / 2), "all errors are squared"),
    (misfit_by(turn=True), "swapped"),
    (misfit_by(total=np.mean), "take the mean"),
]


def split_in_jax(work, size_factor, size_power, text_factor, text_power):
    both = size_power + text_power
    size = (size_power * size_factor / text_power / text_factor) ** (1 / both) * (work / 6) ** (text_power / both)
    return jnp.stack([size, work / 6 / size], axis=1)


def misfit_in_jax(losses, expected, threshold):
    off = jnp.abs(jnp.log(losses) - jnp.log(expected))
    near = jnp.minimum(off, threshold)
    return (near * (off - near / 2)).sum()


RIGHT = [
    ("best_split", in_numpy(split_by())),
    ("best_split", in_jax(split_in_jax)),
    ("huber_misfit", in_numpy(misfit_by())),
    ("huber_misfit", in_jax(misfit_in_jax)),
]
WRONG = [
    *(("best_split", in_numpy(function), words) for function, words in SPLITS),
    *(("huber_misfit", in_numpy(function), words) for function, words in MISFITS),
]
