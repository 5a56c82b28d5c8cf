"""Exercise `sinusoid`: sines and cosines of each position, at one frequency per pair of columns.

The right steps are float64 NumPy and share no line with `plainformer.positions`.
"""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake
from plainformer.exercises.positions._angles import (
    ANGLES,
    FREQUENCIES,
    OWN_COUNT,
    right_frequencies,
    side_by_side,
    taking_turns,
)


def sinusoid(
    positions,
    d_model,
    *,
    place=lambda positions: positions,
    frequencies=right_frequencies,
    angle=lambda positions, f: positions * f,
    lay=lambda angles, d: taking_turns(np.sin(angles), np.cos(angles)),
    finish=lambda codes: codes,
):
    """Return the code of each position: the sine in column 2i, the cosine in column 2i + 1."""
    return finish(lay(angle(place(positions)[:, None], frequencies(d_model)), d_model))


def _by_column(angles, d, first=np.sin, second=np.cos):
    """Sine in even, cosine in odd columns, of angles that have a column each."""
    return np.where(np.arange(d) % 2 == 0, first(angles), second(angles))


def _cosine_first(angles, d):
    return _by_column(angles, d, np.cos, np.sin)


SINUSOID = [
    Mistake(
        "every row is the code of position 0: the positions play no part",
        "Which angle do you take the sine of, and where does the position enter?",
        place=lambda positions: 0 * positions,
    ),
    Mistake(
        "you lay all sines side by side, and then all cosines",
        "Columns 2i and 2i + 1 belong to the same frequency. What stands in columns 0 and 1?",
        lay=lambda angles, d: side_by_side(np.sin(angles), np.cos(angles)),
    ),
    Mistake(
        "you lay all cosines side by side, and then all sines",
        "Columns 2i and 2i + 1 belong to the same frequency. What stands in columns 0 and 1?",
        lay=lambda angles, d: side_by_side(np.cos(angles), np.sin(angles)),
    ),
    Mistake(
        "sine and cosine are swapped: your even columns hold the cosine",
        "At position 0 every sine is 0 and every cosine is 1. What should row 0 be?",
        lay=lambda angles, d: taking_turns(np.cos(angles), np.sin(angles)),
    ),
    Mistake(
        "there are only sines: no column holds a cosine",
        "An angle and pi less the angle have the same sine. Which number tells them apart?",
        {"lay": lambda angles, d: taking_turns(np.sin(angles), np.sin(angles))},
        {"frequencies": lambda d: 10_000.0 ** (-np.arange(d) / d), "lay": lambda angles, d: np.sin(angles)},
        {"frequencies": lambda d: 10_000.0 ** (-2 * np.arange(d) / d), "lay": lambda angles, d: np.sin(angles)},
        {"lay": lambda angles, d: np.sin(angles)},
    ),
    Mistake(
        "you take the number of the column for i, which counts pairs of columns: half of your columns hardly move",
        "Which i do columns 2 and 3 share?",
        frequencies=lambda d: 10_000.0 ** (-2 * np.arange(d) / d),
        lay=_by_column,
    ),
    Mistake(
        "the cosine of a pair has another frequency than its sine: the exponent is column / d in every column",
        "Sine and cosine of a pair belong to one angle. Which exponent do columns 2 and 3 share?",
        frequencies=lambda d: 10_000.0 ** (-np.arange(d) / d),
        lay=_by_column,
    ),
    Mistake(
        "you count the columns from 1: the first is a cosine, and the sine of the pair comes with the next frequency",
        "With columns 1, 2, 3 and 4, which have an even number, and which of them belong together?",
        frequencies=[
            lambda d: 10_000.0 ** (-2 * (np.arange(1, d + 1) // 2) / d),
            lambda d: 10_000.0 ** (-2 * np.arange(1, d + 1) / d),
            lambda d: 10_000.0 ** (-np.arange(1, d + 1) / d),
        ],
        lay=_cosine_first,
    ),
    Mistake(
        "your result is transposed: it has one column for each position",
        "The code of a token is added to its row of x. Which axis of your result counts the tokens?",
        finish=lambda codes: codes.T,
    ),
]


def _case(name, positions, d_model, is_edge=False):
    return Case(name, {"positions": np.array(positions), "d_model": d_model}, is_edge)


EXERCISE = Exercise(
    sinusoid,
    [*FREQUENCIES, *ANGLES, *OWN_COUNT, *SINUSOID],
    cases=[
        _case("five positions from 0", range(5), 4),
        _case("positions in any order", [3, 0, 11, 7, 2, 7], 4),
        _case("four frequencies", range(6), 8),
        _case("one pair of columns", range(5), 2, is_edge=True),
        _case("one position", [20], 4, is_edge=True),
    ],
    examples=[
        {"positions": np.array([0, 1, 2]), "d_model": 4},
        {"positions": np.array([20, 21]), "d_model": 4},
        {"positions": np.array([0, 1]), "d_model": 8},
    ],
    result="(seq, d_model)",
    tried_on="{positions[0]} positions, {d_model} columns",
)
