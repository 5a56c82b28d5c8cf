"""Answers to the exercises of the chapter `positions` as readers would write them, right ones and wrong ones."""

import math

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

import plainformer as pf


def code(position, d, frequency, order="sc", first=0):
    """One row, number by number; `frequency(i)` for pair i."""
    row = []
    for i in range(d // 2):
        angle = position * frequency(i + first)
        row += [{"s": math.sin, "c": math.cos}[letter](angle) for letter in order]
    return row


def slow(d):
    return lambda i: 10000 ** (-2 * i / d)


def clocks(frequency, turn=1.0, start=0, first=0):
    """Sinusoids of a reader who goes row by row, with a frequency of pair i among d columns."""
    return lambda positions, d: np.array(
        [code((int(n) + start) * turn, d, lambda i: frequency(i, d), first=first) for n in positions]
    )


def halves(first, second):
    def codes(positions, d):
        angles = positions[:, None] / 10000 ** (np.arange(0, d, 2) / d)
        return np.concatenate([first(angles), second(angles)], axis=1)

    return codes


def columns(exponent, even=np.sin, odd=np.cos):
    """Sinusoids of a reader who fills column after column."""

    def codes(positions, d):
        angles = np.stack([positions / 10000 ** (exponent(column) / d) for column in range(d)], axis=1)
        angles[:, ::2], angles[:, 1::2] = even(angles[:, ::2]), odd(angles[:, 1::2])
        return angles

    return codes


def cosine_in_front(positions, d):
    return [code(int(n), d, slow(d), order="cs") for n in positions]


def without_positions(positions, d):
    return clocks(lambda i, d: slow(d)(i))(np.arange(len(positions)), d)


def right_codes(positions, d):
    return clocks(lambda i, d: slow(d)(i))(positions, d)


SINUSOID = [
    (clocks(lambda i, d: 10000 ** (-i / d)), "the 2 is missing"),
    (clocks(lambda i, d: 10000 ** (-(2 * i // d))), "all pairs turn by the same angle"),
    (clocks(lambda i, d: slow(d)(i), first=1), "you count the pairs from 1"),
    (clocks(lambda i, d: 10000 ** (-i / max(d // 2 - 1, 1))), "number of pairs less one"),
    (lambda positions, d: right_codes_faster(positions, d), "faster and faster"),
    (clocks(lambda i, d: slow(d)(i), turn=math.pi / 180), "in degrees"),
    (clocks(lambda i, d: slow(d)(i), turn=2 * math.pi), "by 2 pi"),
    (clocks(lambda i, d: slow(d)(i), turn=0), "every row is the code of position 0"),
    (clocks(lambda i, d: slow(d)(i), start=1), "you count positions from 1"),
    (without_positions, "you count the rows"),
    (halves(np.sin, np.cos), "all sines side by side"),
    (halves(np.cos, np.sin), "all cosines side by side"),
    (cosine_in_front, "sine and cosine are swapped"),
    (columns(lambda column: column // 2 * 2, odd=np.sin), "only sines"),
    (columns(lambda column: column, odd=np.sin), "only sines"),
    (halves(np.sin, lambda angles: angles[:, :0]), "only sines"),
    (columns(lambda column: 2 * column), "the number of the column for i"),
    (columns(lambda column: column), "another frequency than its sine"),
    (columns(lambda c: (c + 1) - (c + 1) % 2, even=np.cos, odd=np.sin), "count the columns from 1"),
    (columns(lambda c: 2 * (c + 1), even=np.cos, odd=np.sin), "count the columns from 1"),
    (lambda positions, d: right_codes(positions, d).T, "transposed"),
]


def right_codes_faster(positions, d):
    angles = np.outer(positions, [10000 ** (2 * i / d) for i in range(d // 2)])
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(positions), d)


def turned(frequency=slow, pairs="halves", sign=1, stretch=1.0, start=0):
    """Rotary positions of a reader who turns complex numbers, pair by pair."""

    def rotate(rows, positions):
        d = rows.shape[1]
        result = np.array(rows, float)
        for n, position in enumerate(positions):
            for i in range(d // 2):
                at = (i, i + d // 2) if pairs == "halves" else (2 * i, 2 * i + 1)
                angle = sign * stretch * (position + start) * frequency(d)(i)
                point = complex(*rows[n, list(at)]) * complex(math.cos(angle), math.sin(angle))
                result[n, list(at)] = point.real, point.imag
        return result

    return rotate


def other_half(rows, sign=-1):
    a, b = np.split(rows, 2, axis=1)
    return np.concatenate([sign * b, a], axis=1)


def by_halves(angles_of, partner=other_half):
    """Rotary positions as in many libraries: rows * cos + partner(rows) * sin."""

    def rotate(rows, positions):
        angles = positions[:, None] * angles_of(rows.shape[1])
        return rows * np.cos(angles) + partner(rows) * np.sin(angles)

    return rotate


def twice(d):
    return np.tile(10000 ** (-np.arange(0, d, 2) / d), 2)


def moved(pick, put):
    """Turned in pairs as they are picked, and put back in another way."""

    def rotate(rows, positions):
        a, b = pick(rows)
        t = positions[:, None] * twice(rows.shape[1])[: rows.shape[1] // 2]
        return put(a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t))

    return rotate


def interleaved(a, b):
    result = np.empty((len(a), 2 * a.shape[1]))
    result[:, ::2], result[:, 1::2] = a, b
    return result


def in_place(rows, positions):
    rows = np.array(rows, float)
    half = rows.shape[1] // 2
    t = positions[:, None] * twice(2 * half)[:half]
    rows[:, :half] = rows[:, :half] * np.cos(t) - rows[:, half:] * np.sin(t)
    rows[:, half:] = rows[:, :half] * np.sin(t) + rows[:, half:] * np.cos(t)
    return rows


ROTARY = [
    (turned(lambda d: lambda i: 10000 ** (-i / d)), "the 2 is missing"),
    (turned(lambda d: lambda i: 1), "all pairs turn by the same angle"),
    (turned(lambda d: lambda i: slow(d)(i + 1)), "you count the pairs from 1"),
    (turned(lambda d: lambda i: 10000 ** (-i / max(d // 2 - 1, 1))), "number of pairs less one"),
    (turned(lambda d: lambda i: 10000 ** (2 * i / d)), "faster and faster"),
    (turned(stretch=math.pi / 180), "in degrees"),
    (turned(stretch=2 * math.pi), "by 2 pi"),
    (turned(start=1), "you count positions from 1"),
    (lambda rows, positions: turned()(rows, range(len(rows))), "you count the rows"),
    (lambda rows, positions: rows, "nothing is turned"),
    (turned(pairs="neighbours"), "you pair neighbours"),
    (moved(lambda x: np.split(x, 2, axis=1), interleaved), "put them back as neighbours"),
    (moved(lambda x: (x[:, ::2], x[:, 1::2]), lambda a, b: np.hstack([a, b])), "put them back in two halves"),
    (turned(sign=-1), "you turn the other way"),
    (by_halves(twice, lambda rows: -other_half(rows)), "you turn the other way"),
    (by_halves(twice, lambda rows: other_half(rows, sign=1)), "same sign"),
    (by_halves(twice, lambda rows: -other_half(rows, sign=1)), "same sign"),
    (by_halves(twice, lambda rows: 0 * rows), "only multiplied by its cosine"),
    (in_place, "after it was turned"),
    (by_halves(lambda d: 10000 ** (-np.arange(d) / d)), "turned by different angles"),
    (by_halves(lambda d: 10000 ** (-2 * np.arange(d) / d)), "turned by different angles"),
    (by_halves(lambda d: np.repeat(twice(d)[: d // 2], 2)), "laid out for pairs of neighbours"),
    (lambda rows, positions: rows + right_codes(positions, rows.shape[1]), "you add the sinusoidal code"),
    (lambda rows, positions: rows + turned()(rows, positions), "you add the rows"),
]


def alibi(slope=lambda h, n: 2 ** (-8 * h / n), distance=lambda i, j: abs(i - j), sign=-1):
    """ALiBi in loops; heads, queries and keys are counted from 1, 0 and 0."""
    return lambda heads, q_seq: [
        [[sign * slope(h, heads) * distance(i, j) for j in range(q_seq)] for i in range(q_seq)]
        for h in range(1, heads + 1)
    ]


def right_bias(heads, q_seq):
    return np.array(alibi()(heads, q_seq))


ALIBI = [
    (alibi(sign=1), "your bias is positive"),
    (alibi(slope=lambda h, n: 2 ** (-8 / n)), "all heads have the same slope"),
    (alibi(slope=lambda h, n: 1), "all heads have the same slope"),
    (alibi(slope=lambda h, n: 2 ** (-8 * (h - 1) / n)), "your slopes begin at 1"),
    (lambda heads, q_seq: right_bias(heads, q_seq)[::-1], "in reverse order"),
    (alibi(slope=lambda h, n: 2**-h), "right for eight heads only"),
    (alibi(slope=lambda h, n: 2 ** (-h / n)), "the 8 is missing"),
    (alibi(slope=lambda h, n: 1 / h), "in proportion to h"),
    (alibi(slope=lambda h, n: h / n), "in proportion to h"),
    (alibi(distance=lambda i, j: (i - j) ** 2), "distances are squared"),
    (alibi(distance=lambda i, j: i - j), "keys after the query get a bonus"),
    (alibi(distance=lambda i, j: j - i), "keys before the query get a bonus"),
    (alibi(distance=lambda i, j: max(i - j, 0)), "those after it have none"),
    (alibi(distance=lambda i, j: max(j - i, 0)), "those before it have none"),
    (alibi(distance=lambda i, j: i - j if j <= i else math.inf), "you hide the keys"),
    (alibi(distance=lambda i, j: j), "does not depend on the query"),
    (lambda heads, q_seq: np.array(alibi(distance=lambda i, j: -j)(heads, q_seq))[:, :1], "not depend on the query"),
    (alibi(distance=lambda i, j: abs(i - j) + 1), "one too large"),
    (lambda heads, q_seq: right_bias(heads, q_seq).transpose(1, 2, 0), "the heads are your last axis"),
    (lambda heads, q_seq: np.exp(right_bias(heads, q_seq)), "you return factors"),
    (alibi(slope=lambda h, n: 2 ** (8 * h / n)), "divided by the slope"),
]


def blocks(two_by_two, frequency=slow, stretch=1.0):
    """The shift of a reader who fills block after block; `two_by_two(c, s)` is one of them."""

    def matrix(offset, d):
        result = np.zeros((d, d))
        for i in range(d // 2):
            angle = stretch * offset * frequency(d)(i)
            result[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = two_by_two(math.cos(angle), math.sin(angle))
        return result

    return matrix


def turn(c, s):
    return [[c, -s], [s, c]]


def quarters(offset, d):
    t = offset * twice(d)[: d // 2]
    cosines, sines = np.diag(np.cos(t)), np.diag(np.sin(t))
    return np.block([[cosines, -sines], [sines, cosines]])


SHIFT = [
    (blocks(turn, lambda d: lambda i: 10000 ** (-i / d)), "the 2 is missing"),
    (blocks(turn, lambda d: lambda i: 1), "all pairs turn by the same angle"),
    (blocks(turn, lambda d: lambda i: slow(d)(i + 1)), "you count the pairs from 1"),
    (blocks(turn, lambda d: lambda i: 10000 ** (-i / max(d // 2 - 1, 1))), "number of pairs less one"),
    (blocks(turn, lambda d: lambda i: 10000 ** (2 * i / d)), "faster and faster"),
    (blocks(turn, stretch=math.pi / 180), "in degrees"),
    (blocks(turn, stretch=2 * math.pi), "by 2 pi"),
    (lambda offset, d: blocks(turn)(offset, d).T, "turns back"),
    (lambda offset, d: blocks(turn)(-offset, d), "turns back"),
    (blocks(lambda c, s: [[c, s], [s, c]]), "same sign"),
    (blocks(lambda c, s: [[c, s], [s, -c]]), "mirrors, and does not turn"),
    (blocks(lambda c, s: [[s, c], [-c, s]]), "change places in your blocks"),
    (blocks(lambda c, s: [[c, 0], [0, c]]), "only cosines"),
    (quarters, "all sines first and then all cosines"),
    (lambda offset, d: np.roll(np.eye(d), offset, axis=1), "a permutation"),
    (lambda offset, d: np.roll(np.eye(d), 2 * offset, axis=0), "a permutation"),
    (lambda offset, d: np.eye(d), "the identity"),
    (lambda offset, d: blocks(turn)(1, d), "whatever the offset is"),
]


def sinusoid(positions, d_model):
    angles = positions[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    codes = np.zeros((len(positions), d_model))
    codes[:, ::2], codes[:, 1::2] = np.sin(angles), np.cos(angles)
    return codes


def rotary(rows, positions):
    a, b = np.split(rows, 2, axis=1)
    angles = np.outer(positions, 10000 ** (-np.arange(0, rows.shape[1], 2) / rows.shape[1]))
    points = (a + 1j * b) * np.exp(1j * angles)
    return np.concatenate([points.real, points.imag], axis=1)


def shift_by_least_squares(offset, d_model):
    """The matrix that takes 100 codes to their successors, found without any trigonometry."""
    before, after = (right_codes(np.arange(100) + k, d_model) for k in (0, offset))
    return np.linalg.lstsq(before, after)[0]


def package_alibi(num_heads, q_seq):
    return pf.AlibiPositions(num_heads).bias(jnp.arange(q_seq), jnp.arange(q_seq))


RIGHT = [
    ("sinusoid", in_numpy(right_codes)),
    ("sinusoid", in_jax(pf.sinusoidal_positions, static_argnums=1)),
    ("rotary", in_numpy(turned())),
    ("rotary", in_jax(pf.rotate_pairs)),
    ("alibi", alibi()),
    ("alibi", in_jax(package_alibi, static_argnums=(0, 1))),
    ("shift", shift_by_least_squares),
    ("shift", in_jax(pf.shift_matrix, static_argnums=(0, 1))),
]
WRONG = [
    *(("sinusoid", in_numpy(function), words) for function, words in SINUSOID),
    *(("rotary", in_numpy(function), words) for function, words in ROTARY),
    *(("alibi", function, words) for function, words in ALIBI),
    *(("shift", function, words) for function, words in SHIFT),
]
