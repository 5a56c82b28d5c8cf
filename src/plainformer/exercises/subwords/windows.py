"""Exercise `windows`: a series cut into windows that may overlap."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake
from plainformer.exercises.tokens._picks import fill_with_zeros, go_round, pick, repeat_last


def windows(
    series,
    length,
    stride,
    *,
    settings=lambda length, stride: (length, stride),
    starts=lambda total, length, stride: np.arange(0, total - length + 1, stride),
    offsets=lambda length, stride: np.arange(length),
    pick=pick,
    finish=lambda rows: rows,
):
    """Return all whole windows, one per row."""
    length, stride = settings(length, stride)
    return finish(pick(series, starts(len(series), length, stride), offsets(length, stride)))


def _one_less(total, length, stride):
    return np.arange(0, total - length, stride)


MISTAKES = [
    Mistake(
        "your last window is missing where it would end exactly at the end of the series",
        "What is the last start from which `length` numbers still follow, that one included?",
        starts=[_one_less, lambda total, length, stride: np.arange((total - length) // stride) * stride],
    ),
    Mistake(
        "your last windows run beyond the end, where there is no number",
        "JAX does not complain about an index too large. From which start on are there too few numbers left?",
        starts=lambda total, length, stride: np.arange(0, total, stride),
        pick=[repeat_last, go_round, fill_with_zeros],
    ),
    Mistake(
        "you cut the series into windows side by side: the stride plays no part",
        "How far is it from the start of one window to the start of the next?",
        starts=lambda total, length, stride: np.arange(0, total - length + 1, length),
    ),
    Mistake(
        "your windows start at every number: the stride plays no part",
        "How far is it from the start of one window to the start of the next?",
        starts=lambda total, length, stride: np.arange(0, total - length + 1),
    ),
    Mistake(
        "your first window is missing",
        "From which number does a range count, if you do not say so?",
        starts=lambda total, length, stride: np.arange(stride, total - length + 1, stride),
    ),
    Mistake(
        "length and stride are swapped",
        "Which of the two says how many numbers stand in a row of the result?",
        settings=lambda length, stride: (stride, length),
    ),
    Mistake(
        "each window is one number too long",
        "A slice leaves out its end, and so does a range. How many numbers lie from 0 to 2, both included?",
        {"offsets": lambda length, stride: np.arange(length + 1)},
        {"offsets": lambda length, stride: np.arange(length + 1), "starts": _one_less},
    ),
    Mistake(
        "the stride is between the numbers inside a window, where it belongs between the windows",
        "Neighbours in a window are neighbours in the series. What, then, does the stride separate?",
        {"offsets": lambda length, stride: stride * np.arange(length), "pick": repeat_last},
        {
            "offsets": lambda length, stride: stride * np.arange(length),
            "starts": lambda total, length, stride: np.arange(total - (length - 1) * stride),
        },
    ),
    Mistake(
        "your axes are mixed up: the windows are columns",
        "Should x[0] be the first window, or the first number of each?",
        finish=lambda rows: rows.T,
    ),
]


def _case(name, total, length, stride, is_edge=False):
    series = np.random.default_rng(365).normal(size=total).round(3)
    return Case(name, {"series": series, "length": length, "stride": stride}, is_edge)


EXERCISE = Exercise(
    windows,
    MISTAKES,
    cases=[
        _case("windows that overlap", 23, 6, 4),
        _case("a window that ends with the series", 22, 6, 4),
        _case("gaps between the windows", 24, 3, 5),
        _case("windows side by side", 24, 6, 6, is_edge=True),
        _case("one window", 6, 6, 2, is_edge=True),
    ],
    examples=[{"series": np.arange(10.0, 10.0 + total), "length": 3, "stride": 2} for total in (7, 6)],
    result="(num_windows, length)",
    tried_on="{series[0]} numbers, windows of {length}",
)
