"""Exercise `rotary`: each pair of columns turned by an angle that grows with the position.

The right steps are float64 NumPy and share no line with `plainformer.positions`.
"""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats
from plainformer.exercises.positions._angles import (
    ANGLES,
    FREQUENCIES,
    OWN_COUNT,
    right_frequencies,
    side_by_side,
    taking_turns,
)


def rotary(
    rows,
    positions,
    *,
    place=lambda positions: positions,
    frequencies=right_frequencies,
    angle=lambda positions, f: positions * f,
    pair=lambda rows: np.split(rows, 2, axis=1),
    turn=lambda a, b, t: (a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)),
    join=side_by_side,
    finish=lambda turned, rows, t: turned,
):
    """Return the rows with columns i and i + d_k / 2 turned as one point in a plane."""
    t = angle(place(positions)[:, None], frequencies(rows.shape[1]))
    return finish(join(*turn(*pair(rows), t)), rows, t)


def _halves(rows):
    return rows[:, : rows.shape[1] // 2], rows[:, rows.shape[1] // 2 :]


def _neighbours(rows):
    return rows[:, ::2], rows[:, 1::2]


def _turn_each(a, b, angles):
    """Turn, with an angle for every column where the two of a pair should share one."""
    of_a, of_b = _halves(angles)
    return a * np.cos(of_a) - b * np.sin(of_a), a * np.sin(of_b) + b * np.cos(of_b)


def _in_place(a, b, angles):
    a = a * np.cos(angles) - b * np.sin(angles)
    return a, a * np.sin(angles) + b * np.cos(angles)


ROTARY = [
    Mistake(
        "you return the rows as they came: nothing is turned",
        "By which angle should the row at position 1 turn its first pair?",
        finish=lambda turned, rows, t: rows,
    ),
    Mistake(
        "you pair neighbours, columns 2i and 2i + 1; here column i goes with column i + d_k / 2",
        "Both are in use, but one model needs one of them. Which column is the partner of column 0 here?",
        pair=_neighbours,
        join=taking_turns,
    ),
    Mistake(
        "you take the pairs from the two halves, but put them back as neighbours",
        "If nothing is turned, as at position 0, do you return the row as it was?",
        join=taking_turns,
    ),
    Mistake(
        "you take the pairs from neighbours, but put them back in two halves",
        "If nothing is turned, as at position 0, do you return the row as it was?",
        pair=_neighbours,
    ),
    Mistake(
        "you turn the other way",
        "A pair (1, 0) turned by a small angle should go to (cos, sin). Where does yours go?",
        turn=lambda a, b, t: (a * np.cos(t) + b * np.sin(t), b * np.cos(t) - a * np.sin(t)),
    ),
    Mistake(
        "both of your sines have the same sign, so pairs change their length and are not just turned",
        "Turn (1, 0) and (0, 1) by 90 degrees. Where do they go, and which of the four numbers is negative?",
        turn=[
            lambda a, b, t: (a * np.cos(t) - b * np.sin(t), b * np.cos(t) - a * np.sin(t)),
            lambda a, b, t: (a * np.cos(t) + b * np.sin(t), b * np.cos(t) + a * np.sin(t)),
        ],
    ),
    Mistake(
        "each number is only multiplied by its cosine: the two of a pair never meet",
        "Turn (1, 0) by 90 degrees. Can the result be (0, 0)?",
        turn=lambda a, b, t: (a * np.cos(t), b * np.cos(t)),
    ),
    Mistake(
        "your second half is computed from the first half after it was turned, not before",
        "Both new numbers are made from both old ones. Is the old first one still there when you need it?",
        turn=_in_place,
    ),
    Mistake(
        "the two numbers of a pair are turned by different angles: every column has an angle of its own",
        "A pair is one point in a plane. How many angles does it take to turn a point?",
        frequencies=[lambda d: 10_000.0 ** (-np.arange(d) / d), lambda d: 10_000.0 ** (-2 * np.arange(d) / d)],
        turn=_turn_each,
    ),
    Mistake(
        "your angles are laid out for pairs of neighbours, while your pairs are columns i and i + d_k / 2",
        "Which angle do columns 0 and d_k / 2 share, and which does each of them get from you?",
        frequencies=lambda d: np.repeat(right_frequencies(d), 2),
        turn=_turn_each,
    ),
    Mistake(
        "you add the sinusoidal code to the rows, where you should turn them",
        "Should a query of zeros change? And how long should a row be afterwards?",
        finish=[
            lambda turned, rows, t: rows + taking_turns(np.sin(t), np.cos(t)),
            lambda turned, rows, t: rows + side_by_side(np.sin(t), np.cos(t)),
        ],
    ),
    Mistake(
        "you add the rows to what you have turned",
        "A turned row is as long as it was. Is yours?",
        finish=lambda turned, rows, t: rows + turned,
    ),
]

_RNG = np.random.default_rng(2021)


def _case(name, positions, d_k, is_edge=False):
    rows = _RNG.normal(size=(len(positions), d_k)).round(2)
    return Case(name, {"rows": rows, "positions": np.array(positions)}, is_edge)


EXERCISE = Exercise(
    rotary,
    [*FREQUENCIES, *ANGLES, *OWN_COUNT, *ROTARY],
    cases=[
        _case("five rows from position 0", range(5), 4),
        _case("positions in any order", [3, 0, 11, 7, 2, 7], 4),
        _case("four pairs", range(6), 8),
        _case("one pair", range(5), 2, is_edge=True),
        _case("one row", [20], 4, is_edge=True),
    ],
    examples=[
        {**floats(rows=[[1, 0, 0, 0], [1, 0, 0, 0]]), "positions": np.array([0, 1])},
        {**floats(rows=[[1, 2, 3, 4], [1, 2, 3, 4]]), "positions": np.array([0, 1])},
        {**floats(rows=[[1, 2, 3, 4], [1, 2, 3, 4]]), "positions": np.array([20, 21])},
        {**floats(rows=[[1, 2, 3, 4, 5, 6, 7, 8]]), "positions": np.array([1])},
    ],
    result="(seq, d_k)",
    tried_on="{rows[0]} rows, {rows[1]} columns",
)
