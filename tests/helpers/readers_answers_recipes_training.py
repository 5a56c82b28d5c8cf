"""Answers to the exercise of the chapter `recipes` on Muon as readers would write them, right and wrong."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

NUMBERS = (3.4445, -4.7750, 2.0315)


def by_steps(length=np.linalg.norm, powers=None, numbers=NUMBERS, steps=None):
    """The matrix of a reader who takes some step otherwise."""
    first, third, fifth = numbers

    def of_gram(x):
        gram = x @ x.T
        return gram @ x, gram @ gram @ x

    def orthogonal(gradient, num_steps):
        x = gradient / length(gradient)
        for _ in range(num_steps if steps is None else steps):
            cube, power = (powers or of_gram)(x)
            x = first * x + third * cube + fifth * power
        return x

    return orthogonal


def in_jax_by_the_other_gram(gradient, num_steps):
    x = gradient / jnp.sqrt(jnp.sum(gradient * gradient))
    for _ in range(num_steps):
        gram = x.T @ x
        x = 3.4445 * x + x @ (2.0315 * gram @ gram - 4.775 * gram)
    return x


STEPS = [
    (by_steps(length=lambda gradient: 1), "do not divide"),
    (by_steps(length=lambda gradient: np.max(np.abs(gradient))), "divide by the largest entry"),
    (by_steps(length=lambda gradient: np.sum(np.square(gradient))), "without its root"),
    (by_steps(powers=lambda x: (x * x * x, x**5)), "powers of the entries"),
    (by_steps(powers=lambda x: (x @ x.T @ x,) * 2), "the third power again"),
    (by_steps(numbers=(3.4445, 4.775, 2.0315)), "third power is added"),
    (by_steps(steps=1), "one step only"),
]
RIGHT = [("newton_schulz", in_numpy(by_steps())), ("newton_schulz", in_jax(in_jax_by_the_other_gram, static_argnums=1))]
WRONG = [("newton_schulz", in_numpy(function), words) for function, words in STEPS]
