"""The exercises of chapter 01 that cut a long row of numbers or ids into windows."""

import numpy as np

from plainformer.exercises.exercise import Case, Exercise, Mistake


def _pick(series, starts, offsets):
    """The numbers at starts plus offsets, all of which must exist."""
    where = starts[:, None] + offsets
    if where.size and where.max() >= len(series):
        raise IndexError("a window runs beyond the end")
    return series[where]


def _repeat_last(series, starts, offsets):
    return series[np.minimum(starts[:, None] + offsets, len(series) - 1)]


def _go_round(series, starts, offsets):
    return series[(starts[:, None] + offsets) % len(series)]


def _fill_with_zeros(series, starts, offsets):
    where = starts[:, None] + offsets
    return np.where(where < len(series), series[np.minimum(where, len(series) - 1)], 0)


def _windows(
    series,
    length,
    stride,
    *,
    settings=lambda length, stride: (length, stride),
    starts=lambda total, length, stride: np.arange(0, total - length + 1, stride),
    offsets=lambda length, stride: np.arange(length),
    pick=_pick,
    finish=lambda rows: rows,
):
    length, stride = settings(length, stride)
    return finish(pick(series, starts(len(series), length, stride), offsets(length, stride)))


def _pairs(
    ids,
    length,
    *,
    rows=lambda total, length: np.arange(0, total - length, length),
    shift=lambda offsets: offsets + 1,
    pick=_pick,
    wrap=lambda inputs, targets: targets,
    order=lambda inputs, targets: (inputs, targets),
    finish=lambda rows: rows,
):
    starts = rows(len(ids), length)
    inputs = pick(ids, starts, np.arange(length))
    targets = pick(ids, starts, shift(np.arange(length)))
    return np.stack([finish(each) for each in order(inputs, wrap(inputs, targets))])


def _beyond(pick) -> dict:
    return {"starts": lambda total, length, stride: np.arange(0, total, stride), "pick": pick}


def _short(pick) -> dict:
    return {"rows": lambda total, length: np.arange(0, total, length), "pick": pick}


WINDOWS = [
    Mistake(
        "starts",
        "your last window is missing where it would end exactly at the end of the series",
        "What is the last start from which `length` numbers still follow, that one included?",
        lambda total, length, stride: np.arange(0, total - length, stride),
        lambda total, length, stride: np.arange((total - length) // stride) * stride,
    ),
    Mistake(
        "starts",
        "your last windows run beyond the end, where there is no number",
        "JAX does not complain about an index too large. From which start on are there too few numbers left?",
        _beyond(_repeat_last),
        _beyond(_go_round),
        _beyond(_fill_with_zeros),
    ),
    Mistake(
        "starts",
        "you cut the series into windows side by side: the stride plays no part",
        "How far is it from the start of one window to the start of the next?",
        lambda total, length, stride: np.arange(0, total - length + 1, length),
    ),
    Mistake(
        "starts",
        "your windows start at every number: the stride plays no part",
        "How far is it from the start of one window to the start of the next?",
        lambda total, length, stride: np.arange(0, total - length + 1),
    ),
    Mistake(
        "starts",
        "your first window is missing",
        "From which number does a range count, if you do not say so?",
        lambda total, length, stride: np.arange(stride, total - length + 1, stride),
    ),
    Mistake(
        "settings",
        "length and stride are swapped",
        "Which of the two says how many numbers stand in a row of the result?",
        lambda length, stride: (stride, length),
    ),
    Mistake(
        "offsets",
        "each window is one number too long",
        "A slice leaves out its end, and so does a range. How many numbers lie from 0 to 2, both included?",
        lambda length, stride: np.arange(length + 1),
        {
            "offsets": lambda length, stride: np.arange(length + 1),
            "starts": lambda total, length, stride: np.arange(0, total - length, stride),
        },
    ),
    Mistake(
        "offsets",
        "the stride is between the numbers inside a window, where it belongs between the windows",
        "Neighbours in a window are neighbours in the series. What, then, does the stride separate?",
        {"offsets": lambda length, stride: stride * np.arange(length), "pick": _repeat_last},
        {
            "offsets": lambda length, stride: stride * np.arange(length),
            "starts": lambda total, length, stride: np.arange(total - (length - 1) * stride),
        },
    ),
    Mistake(
        "finish",
        "your axes are mixed up: the windows are columns",
        "Should x[0] be the first window, or the first number of each?",
        lambda rows: rows.T,
    ),
]
PAIRS = [
    Mistake(
        "shift",
        "your targets are the inputs themselves: nothing is shifted, so the answer stands in the question",
        "What comes after ids[n]?",
        {"shift": lambda offsets: offsets},
        {"shift": lambda offsets: offsets, "rows": lambda total, length: np.arange(0, total - length + 1, length)},
    ),
    Mistake(
        "shift",
        "your targets are shifted by two: each is the id after the next one",
        "How many places lie between an id and the one that follows it?",
        {"shift": lambda offsets: offsets + 2, "pick": _repeat_last},
        {"shift": lambda offsets: offsets + 2, "rows": lambda total, length: np.arange(0, total - length - 1, length)},
    ),
    Mistake(
        "order",
        "inputs and targets are swapped: each target is the id before its input",
        "Which of the two is one step ahead in the text?",
        lambda inputs, targets: (targets, inputs),
    ),
    Mistake(
        "wrap",
        "the last target of each row is the first id of that row: the shift goes round inside the row",
        "What stands in the text after the last id of a row?",
        {"wrap": lambda inputs, targets: np.roll(inputs, -1, axis=1)},
        {
            "wrap": lambda inputs, targets: np.roll(inputs, -1, axis=1),
            "rows": lambda total, length: np.arange(0, total - length + 1, length),
            "pick": _repeat_last,
        },
    ),
    Mistake(
        "wrap",
        "you shift along the wrong axis: each target is the id one row further down",
        "Along which axis does the text go on?",
        {"wrap": lambda inputs, targets: np.roll(inputs, -1, axis=0)},
        {
            "wrap": lambda inputs, targets: np.roll(inputs, -1, axis=0),
            "rows": lambda total, length: np.arange(0, total - length + 1, length),
            "pick": _repeat_last,
        },
    ),
    Mistake(
        "rows",
        "your last row needs ids beyond the end of the text",
        "The last input needs a target, too. How many ids must be left for one more row?",
        {"rows": lambda total, length: np.arange(0, total - length + 1, length), "pick": _repeat_last},
        {"rows": lambda total, length: np.arange(0, total - length + 1, length), "pick": _go_round},
        {"rows": lambda total, length: np.arange(0, total - length + 1, length), "pick": _fill_with_zeros},
        _short(_repeat_last),
        _short(_go_round),
        _short(_fill_with_zeros),
    ),
    Mistake(
        "rows",
        "your last row is missing where its target is exactly the last id",
        "How many ids do `length` inputs and their targets need together?",
        lambda total, length: np.arange(0, total - length - 1, length),
        lambda total, length: np.arange(0, total - 2 * length, length),
    ),
    Mistake(
        "rows",
        "your rows start at every id, so that each id is asked for many times",
        "Rows here lie side by side. Where does the second begin?",
        lambda total, length: np.arange(total - length),
    ),
    Mistake(
        "rows",
        "your rows are length + 1 apart, so that an id between two rows is never an input",
        "A row's last target may be the next row's first input. Where does the second row begin?",
        lambda total, length: np.arange(0, total - length, length + 1),
    ),
    Mistake(
        "finish",
        "your axes are mixed up: the rows of the text have become columns",
        "Should inputs[0] be the beginning of the text, or the first id of each row?",
        lambda rows: rows.T,
    ),
]


def _series_cases() -> list[Case]:
    def case(name, total, length, stride, is_edge=False):
        series = np.random.default_rng(365).normal(size=total).round(3)
        return Case(name, {"series": series, "length": length, "stride": stride}, is_edge)

    return [
        case("windows that overlap", 23, 6, 4),
        case("a window that ends with the series", 22, 6, 4),
        case("gaps between the windows", 24, 3, 5),
        case("windows side by side", 24, 6, 6, is_edge=True),
        case("one window", 6, 6, 2, is_edge=True),
    ]


def _series_examples() -> list[dict]:
    def example(total, length, stride):
        return {"series": np.arange(10.0, 10.0 + total), "length": length, "stride": stride}

    return [example(7, 3, 2), example(6, 3, 2)]


def _id_cases() -> list[Case]:
    def case(name, total, length, is_edge=False):
        ids = np.random.default_rng(365).permutation(100)[:total]
        return Case(name, {"ids": ids, "length": length}, is_edge)

    return [
        case("ids to spare at the end", 23, 4),
        case("a last target that is the last id", 21, 4),
        case("one id too few for another row", 24, 6),
        case("one row", 6, 5, is_edge=True),
        case("one id a row", 6, 1, is_edge=True),
    ]


def _id_examples() -> list[dict]:
    return [{"ids": np.arange(10, 10 + total), "length": 3} for total in (8, 7, 6)]


EXERCISES = {
    "windows": Exercise(
        _windows,
        WINDOWS,
        _series_cases,
        _series_examples,
        "(num_windows, length)",
        "{series[0]} numbers, windows of {length}",
    ),
    "pairs": Exercise(
        _pairs,
        PAIRS,
        _id_cases,
        _id_examples,
        "(num_rows, length)",
        "{ids[0]} ids, rows of {length}",
        is_exact=True,
        parts=("inputs", "targets"),
    ),
}
