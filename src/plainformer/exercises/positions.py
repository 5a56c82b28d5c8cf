"""The exercises of chapter 05: sinusoids and their shift, rotary positions and ALiBi.

The right steps are float64 NumPy and share no line with `plainformer.positions`.
"""

import numpy as np

from plainformer.exercises import position_mistakes as wrong
from plainformer.exercises.alibi_mistakes import ALIBI
from plainformer.exercises.exercise import Case, Exercise
from plainformer.exercises.rotary_mistakes import ROTARY


def _sinusoid(
    positions,
    d_model,
    *,
    place=lambda positions: positions,
    frequencies=wrong.right_frequencies,
    angle=lambda positions, f: positions * f,
    lay=lambda angles, d: np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(angles), d),
    finish=lambda codes: codes,
):
    return finish(lay(angle(place(positions)[:, None], frequencies(d_model)), d_model))


def _rotary(
    rows,
    positions,
    *,
    place=lambda positions: positions,
    frequencies=wrong.right_frequencies,
    angle=lambda positions, f: positions * f,
    pair=lambda rows: np.split(rows, 2, axis=1),
    turn=lambda a, b, t: (a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)),
    join=lambda a, b: np.concatenate([a, b], axis=1),
    finish=lambda turned, rows, t: turned,
):
    t = angle(place(positions)[:, None], frequencies(rows.shape[1]))
    return finish(join(*turn(*pair(rows), t)), rows, t)


def _alibi(
    num_heads,
    q_seq,
    *,
    slopes=lambda n: 2.0 ** (-8 * np.arange(1, n + 1) / n),
    distance=lambda q_seq: np.abs(np.arange(q_seq)[:, None] - np.arange(q_seq)),
    combine=lambda slopes, distance: -slopes[:, None, None] * distance,
):
    return combine(slopes(num_heads), distance(q_seq))


def _shift(
    offset,
    d_model,
    *,
    place=lambda offset: offset,
    frequencies=wrong.right_frequencies,
    angle=lambda positions, f: positions * f,
    block=lambda c, s: [[c, -s], [s, c]],
    lay=wrong.on_the_diagonal,
    finish=lambda matrix, offset: matrix,
):
    angles = angle(place(offset), frequencies(d_model))
    blocks = np.array(block(np.cos(angles), np.sin(angles))).transpose(2, 0, 1)
    return finish(lay(blocks), offset)


def _sinusoid_cases() -> list[Case]:
    return [
        Case("five positions from 0", {"positions": np.arange(5), "d_model": 4}),
        Case("positions in any order", {"positions": np.array([3, 0, 11, 7, 2, 7]), "d_model": 4}),
        Case("four frequencies", {"positions": np.arange(6), "d_model": 8}),
        Case("one pair of columns", {"positions": np.arange(5), "d_model": 2}, is_edge=True),
        Case("one position", {"positions": np.array([20]), "d_model": 4}, is_edge=True),
    ]


def _sinusoid_examples() -> list[dict]:
    return [
        {"positions": np.array([0, 1, 2]), "d_model": 4},
        {"positions": np.array([20, 21]), "d_model": 4},
        {"positions": np.array([0, 1]), "d_model": 8},
    ]


def _rotary_cases() -> list[Case]:
    rng = np.random.default_rng(2021)

    def case(name, positions, d_k, is_edge=False):
        rows = rng.normal(size=(len(positions), d_k)).round(2)
        return Case(name, {"rows": rows, "positions": np.array(positions)}, is_edge)

    return [
        case("five rows from position 0", range(5), 4),
        case("positions in any order", [3, 0, 11, 7, 2, 7], 4),
        case("four pairs", range(6), 8),
        case("one pair", range(5), 2, is_edge=True),
        case("one row", [20], 4, is_edge=True),
    ]


def _rotary_examples() -> list[dict]:
    def example(rows, positions):
        return {"rows": np.array(rows, np.float64), "positions": np.array(positions)}

    return [
        example([[1, 0, 0, 0], [1, 0, 0, 0]], [0, 1]),
        example([[1, 2, 3, 4], [1, 2, 3, 4]], [0, 1]),
        example([[1, 2, 3, 4], [1, 2, 3, 4]], [20, 21]),
        example([[1, 2, 3, 4, 5, 6, 7, 8]], [1]),
    ]


def _alibi_cases() -> list[Case]:
    def case(num_heads, q_seq, is_edge=False):
        heads, tokens = ("one head" if num_heads == 1 else f"{num_heads} heads"), f"{q_seq} tokens"
        return Case(f"{heads}, {tokens}", {"num_heads": num_heads, "q_seq": q_seq}, is_edge)

    return [case(4, 5), case(8, 6), case(2, 3), case(1, 5, is_edge=True)]


def _alibi_examples() -> list[dict]:
    return [{"num_heads": 2, "q_seq": 3}, {"num_heads": 4, "q_seq": 3}]


def _shift_cases() -> list[Case]:
    def case(name, offset, d_model, is_edge=False):
        return Case(name, {"offset": offset, "d_model": d_model}, is_edge)

    return [
        case("three positions on", 3, 4),
        case("seven positions on", 7, 4),
        case("four frequencies", 5, 8),
        case("no shift", 0, 4, is_edge=True),
        case("two positions back", -2, 4, is_edge=True),
        case("one pair of columns", 3, 2, is_edge=True),
    ]


def _shift_examples() -> list[dict]:
    return [{"offset": 1, "d_model": 2}, {"offset": 1, "d_model": 4}, {"offset": 2, "d_model": 4}]


EXERCISES = {
    "sinusoid": Exercise(
        _sinusoid,
        [*wrong.FREQUENCIES, *wrong.ANGLES, *wrong.OWN_COUNT, *wrong.SINUSOID],
        _sinusoid_cases,
        _sinusoid_examples,
        "(seq, d_model)",
        "{positions[0]} positions, {d_model} columns",
    ),
    "shift": Exercise(
        _shift,
        [*wrong.FREQUENCIES, *wrong.ANGLES[:2], *wrong.SHIFT],
        _shift_cases,
        _shift_examples,
        "(d_model, d_model)",
        "{offset} positions, {d_model} columns",
    ),
    "rotary": Exercise(
        _rotary,
        [*wrong.FREQUENCIES, *wrong.ANGLES, *wrong.OWN_COUNT, *ROTARY],
        _rotary_cases,
        _rotary_examples,
        "(seq, d_k)",
        "{rows[0]} rows, {rows[1]} columns",
    ),
    "alibi": Exercise(
        _alibi,
        ALIBI,
        _alibi_cases,
        _alibi_examples,
        "(num_heads, q_seq, q_seq)",
        "{num_heads} heads, {q_seq} tokens",
    ),
}
