"""Exercise `shift`: the matrix that takes the code of each position to that of another, further on.

The right steps are float64 NumPy and share no line with `plainformer.positions`.
"""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake
from plainformer.exercises.positions._angles import ANGLES, FREQUENCIES, right_frequencies


def _on_the_diagonal(blocks):
    """The right place for the 2 x 2 blocks, `(pairs, 2, 2)`."""
    pairs = len(blocks)
    matrix = np.zeros((pairs, 2, pairs, 2))
    matrix[np.arange(pairs), :, np.arange(pairs), :] = blocks
    return matrix.reshape(2 * pairs, 2 * pairs)


def shift(
    offset,
    d_model,
    *,
    place=lambda offset: offset,
    frequencies=right_frequencies,
    angle=lambda positions, f: positions * f,
    block=lambda c, s: [[c, -s], [s, c]],
    lay=_on_the_diagonal,
    finish=lambda matrix, offset: matrix,
):
    """Return a matrix of 2 x 2 blocks, each of which turns a sine and its cosine."""
    angles = angle(place(offset), frequencies(d_model))
    blocks = np.array(block(np.cos(angles), np.sin(angles))).transpose(2, 0, 1)
    return finish(lay(blocks), offset)


def _in_quarters(blocks):
    pairs = len(blocks)
    return _on_the_diagonal(blocks).reshape(pairs, 2, pairs, 2).transpose(1, 0, 3, 2).reshape(2 * pairs, -1)


SHIFT = [
    Mistake(
        "your matrix is the identity: it takes p(n) to itself",
        "By which angle should the first pair turn, for an offset of 1?",
        finish=lambda matrix, offset: np.eye(len(matrix)),
    ),
    Mistake(
        "your matrix turns back: p(n) times it is p(n - offset), not p(n + offset). Its transpose would do",
        "p(n) is a row and stands on the left, with its sine first. Which sum gives sin(a + t), and in which column?",
        block=lambda c, s: [[c, s], [-s, c]],
    ),
    Mistake(
        "both sines of a block have the same sign, so the matrix does not turn",
        "sin(a + t) and cos(a + t) are sums of products. Which of the four products has a minus?",
        block=[lambda c, s: [[c, s], [s, c]], lambda c, s: [[c, -s], [-s, c]]],
    ),
    Mistake(
        "one of your cosines is negative: the matrix mirrors, and does not turn",
        "What should the matrix be for an offset of 0?",
        block=[lambda c, s: [[c, s], [s, -c]], lambda c, s: [[-c, s], [s, c]]],
    ),
    Mistake(
        "sine and cosine change places in your blocks",
        "What should the matrix be for an offset of 0, where every sine is 0 and every cosine is 1?",
        block=[
            lambda c, s: [[s, c], [-c, s]],
            lambda c, s: [[s, -c], [c, s]],
            lambda c, s: [[s, c], [c, -s]],
            lambda c, s: [[s, c], [c, s]],
        ],
    ),
    Mistake(
        "there are only cosines in your matrix: the sine and the cosine of a pair never meet",
        "sin(a + t) is a sum of two products. What is the second?",
        block=lambda c, s: [[c, 0 * s], [0 * s, c]],
    ),
    Mistake(
        "your matrix is made for codes with all sines first and then all cosines",
        "Here columns 2i and 2i + 1 are a pair. Which entries of the matrix join columns 0 and 1?",
        lay=_in_quarters,
    ),
    Mistake(
        "you move the columns along (a permutation), where each pair of columns should turn",
        "Column 0 of p(n + offset) is sin(n + offset). Of which two columns of p(n) can you make it?",
        finish=[
            lambda matrix, offset: np.roll(np.eye(len(matrix)), offset, axis=1),
            lambda matrix, offset: np.roll(np.eye(len(matrix)), -offset, axis=1),
            lambda matrix, offset: np.roll(np.eye(len(matrix)), 2 * offset, axis=1),
            lambda matrix, offset: np.roll(np.eye(len(matrix)), -2 * offset, axis=1),
            lambda matrix, offset: np.eye(len(matrix), k=offset),
            lambda matrix, offset: np.eye(len(matrix), k=-offset),
        ],
    ),
    Mistake(
        "you shift by one position, whatever the offset is", "Which argument have you not used?", place=lambda offset: 1
    ),
]


def _case(name, offset, d_model, is_edge=False):
    return Case(name, {"offset": offset, "d_model": d_model}, is_edge)


EXERCISE = Exercise(
    shift,
    [*FREQUENCIES, *ANGLES[:2], *SHIFT],
    cases=[
        _case("three positions on", 3, 4),
        _case("seven positions on", 7, 4),
        _case("four frequencies", 5, 8),
        _case("no shift", 0, 4, is_edge=True),
        _case("two positions back", -2, 4, is_edge=True),
        _case("one pair of columns", 3, 2, is_edge=True),
    ],
    examples=[{"offset": 1, "d_model": 2}, {"offset": 1, "d_model": 4}, {"offset": 2, "d_model": 4}],
    result="(d_model, d_model)",
    tried_on="{offset} positions, {d_model} columns",
)
