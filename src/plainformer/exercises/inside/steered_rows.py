"""Exercise `steered_rows`: a stream with the mean difference of many pairs of runs added at one token."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _place(seq, place):
    return np.arange(seq) == place


def steered_rows(
    stream,
    ours,
    theirs,
    place,
    strength,
    *,
    differ=lambda ours, theirs: theirs - ours,
    average=lambda rows: rows.mean(axis=0),
    scale=lambda direction, strength: strength * direction,
    choose=_place,
    move=lambda taken, stream, by: stream + taken[:, None] * by,
):
    """Return the stream with the mean difference from our rows to theirs, times the strength, added at a token."""
    by = scale(average(differ(ours, theirs)), strength)
    return move(choose(len(stream), place), stream, by)


MISTAKES = [
    Mistake(
        "the direction leads from their runs to ours",
        "Where does a difference of two rows lead, to the one that is taken away, or from it?",
        differ=lambda ours, theirs: ours - theirs,
    ),
    Mistake(
        "you add their rows, where their difference from ours should be added",
        "What is in both runs of a pair, and should not be added once more?",
        differ=lambda ours, theirs: theirs,
    ),
    Mistake(
        "you add up the pairs, where you should take the mean",
        "Should twice as many pairs lead twice as far?",
        average=lambda rows: rows.sum(axis=0),
    ),
    Mistake(
        "you take the first pair alone",
        "Of how many pairs is a direction the mean?",
        average=lambda rows: rows[0],
    ),
    Mistake(
        "you leave out the strength",
        "What should a strength of 0 do?",
        scale=lambda direction, strength: direction,
    ),
    Mistake(
        "you make the direction one long before you multiply it",
        "How far do their rows lie from ours? Should strength 1 lead as far?",
        scale=lambda direction, strength: strength * direction / np.linalg.norm(direction),
    ),
    Mistake(
        "you steer every token",
        "At which token were the rows of the pairs seen?",
        choose=lambda seq, place: np.ones(seq, bool),
    ),
    Mistake(
        "you steer all tokens from the place on",
        "At which token were the rows of the pairs seen?",
        choose=lambda seq, place: np.arange(seq) >= place,
    ),
    Mistake(
        "you put the direction in place of the row: that is a patch",
        "What of the stream is left at this token when you steer?",
        move=lambda taken, stream, by: np.where(taken[:, None], by, stream),
    ),
]

_RNG = np.random.default_rng(20)


def _case(name, sizes, place, strength, is_edge=False):
    seq, d_model, pairs = sizes
    inputs = {
        "stream": _RNG.normal(size=(seq, d_model)).round(1),
        "ours": _RNG.normal(size=(pairs, d_model)).round(1),
        "theirs": _RNG.normal(size=(pairs, d_model)).round(1),
    }
    return Case(name, inputs | {"place": place, "strength": strength}, is_edge)


EXERCISE = Exercise(
    steered_rows,
    MISTAKES,
    cases=[
        _case("7 tokens, 4 pairs", (7, 5, 4), 2, 1.5),
        _case("the other way", (6, 4, 3), 1, -0.5),
        _case("a single pair", (5, 3, 1), 2, 2.5, is_edge=True),
    ],
    examples=[
        {
            "stream": np.array([[1.0, 2], [3, 4], [5, 6]]),
            "ours": np.array([[1.0, 0], [3, 1]]),
            "theirs": np.array([[2.0, 4], [6, 1]]),
            "place": 1,
            "strength": 2.0,
        },
    ],
    result="(seq, d_model)",
    tried_on="{stream[0]} tokens, {ours[0]} pairs",
)
