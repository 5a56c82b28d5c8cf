"""Exercise `pairs`: rows of ids, and with each id the one that follows it."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake
from plainformer.exercises.tokens._picks import fill_with_zeros, go_round, pick, repeat_last


def pairs(
    ids,
    length,
    *,
    rows=lambda total, length: np.arange(0, total - length, length),
    shift=lambda offsets: offsets + 1,
    pick=pick,
    wrap=lambda inputs, targets: targets,
    order=lambda inputs, targets: (inputs, targets),
    finish=lambda rows: rows,
):
    """Return inputs and targets, cut into rows side by side."""
    starts = rows(len(ids), length)
    inputs = pick(ids, starts, np.arange(length))
    targets = pick(ids, starts, shift(np.arange(length)))
    return np.stack([finish(each) for each in order(inputs, wrap(inputs, targets))])


MISTAKES = [
    Mistake(
        "your targets are the inputs themselves: nothing is shifted, so the answer stands in the question",
        "What comes after ids[n]?",
        {"shift": lambda offsets: offsets},
        {"shift": lambda offsets: offsets, "rows": lambda total, length: np.arange(0, total - length + 1, length)},
    ),
    Mistake(
        "your targets are shifted by two: each is the id after the next one",
        "How many places lie between an id and the one that follows it?",
        {"shift": lambda offsets: offsets + 2, "pick": repeat_last},
        {"shift": lambda offsets: offsets + 2, "rows": lambda total, length: np.arange(0, total - length - 1, length)},
    ),
    Mistake(
        "inputs and targets are swapped: each target is the id before its input",
        "Which of the two is one step ahead in the text?",
        order=lambda inputs, targets: (targets, inputs),
    ),
    Mistake(
        "the last target of each row is the first id of that row: the shift goes round inside the row",
        "What stands in the text after the last id of a row?",
        {"wrap": lambda inputs, targets: np.roll(inputs, -1, axis=1)},
        {
            "wrap": lambda inputs, targets: np.roll(inputs, -1, axis=1),
            "rows": lambda total, length: np.arange(0, total - length + 1, length),
            "pick": repeat_last,
        },
    ),
    Mistake(
        "you shift along the wrong axis: each target is the id one row further down",
        "Along which axis does the text go on?",
        {"wrap": lambda inputs, targets: np.roll(inputs, -1, axis=0)},
        {
            "wrap": lambda inputs, targets: np.roll(inputs, -1, axis=0),
            "rows": lambda total, length: np.arange(0, total - length + 1, length),
            "pick": repeat_last,
        },
    ),
    Mistake(
        "your last row needs ids beyond the end of the text",
        "The last input needs a target, too. How many ids must be left for one more row?",
        *(
            {"rows": rows, "pick": filled}
            for rows in (
                lambda total, length: np.arange(0, total - length + 1, length),
                lambda total, length: np.arange(0, total, length),
            )
            for filled in (repeat_last, go_round, fill_with_zeros)
        ),
        {"rows": lambda total, length: np.arange(0, total - length + 1, length)},  # which raises where N divides T
    ),
    Mistake(
        "your last row is missing where its target is exactly the last id",
        "How many ids do `length` inputs and their targets need together?",
        rows=[
            lambda total, length: np.arange(0, total - length - 1, length),
            lambda total, length: np.arange(0, total - 2 * length, length),
        ],
    ),
    Mistake(
        "your rows start at every id, so that each id is asked for many times",
        "Rows here lie side by side. Where does the second begin?",
        rows=lambda total, length: np.arange(total - length),
    ),
    Mistake(
        "your rows are length + 1 apart, so that an id between two rows is never an input",
        "A row's last target may be the next row's first input. Where does the second row begin?",
        rows=lambda total, length: np.arange(0, total - length, length + 1),
    ),
    Mistake(
        "your axes are mixed up: the rows of the text have become columns",
        "Should inputs[0] be the beginning of the text, or the first id of each row?",
        finish=lambda rows: rows.T,
    ),
]


def _case(name, total, length, is_edge=False):
    return Case(name, {"ids": np.random.default_rng(365).permutation(100)[:total], "length": length}, is_edge)


EXERCISE = Exercise(
    pairs,
    MISTAKES,
    cases=[
        _case("ids to spare at the end", 23, 4),
        _case("a last target that is the last id", 21, 4),
        _case("one id too few for another row", 24, 6),
        _case("one row", 6, 5, is_edge=True),
        _case("one id a row", 6, 1, is_edge=True),
    ],
    examples=[{"ids": np.arange(10, 10 + total), "length": 3} for total in (8, 7, 6)],
    result="(num_rows, length)",
    tried_on="{ids[0]} ids, rows of {length}",
    is_exact=True,
    parts=("inputs", "targets"),
)
