"""Exercise `teacher_forcing`: what a decoder reads, what it should write, and where that counts."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _frame(target, start, stop):
    """What is read, and what is to be written at each place of it."""
    return np.array([start, *target]), np.array([*target, stop])


def _on_the_right(ids, length):
    """Filled up with zeros, and nothing done to what is too long."""
    return np.concatenate([ids, np.zeros(max(length - len(ids), 0), ids.dtype)])


def teacher_forcing(
    target,
    start,
    stop,
    length,
    *,
    cut=_frame,
    fill=_on_the_right,
    count=lambda targets: np.ones(len(targets), bool),
    finish=lambda is_target: is_target,
):
    """Return inputs, targets and whether there is a target, filled up to `length`."""
    inputs, targets = cut(target.tolist(), start, stop)
    return np.stack([fill(inputs, length), fill(targets, length), finish(fill(count(targets), length))])


def _whole(target, start, stop):
    return np.array([start, *target, stop])


def _on_the_left(ids, length):
    return np.concatenate([np.zeros(max(length - len(ids), 0), ids.dtype), ids])


MISTAKES = [
    Mistake(
        "the start token is missing: the first token of the target is read, and nobody has to write it",
        "What does the decoder read when it is to write the first token?",
        cut=lambda target, start, stop: (np.array(target), np.array([*target[1:], stop])),
    ),
    Mistake(
        "the stop token is missing: the model never learns to end",
        "What should the decoder write once it has read the whole target?",
        cut=lambda target, start, stop: (np.array([start, *target[:-1]]), np.array(target)),
    ),
    Mistake(
        "start and stop token are both missing",
        "What is read before the first token is written, and what is written after the last?",
        cut=lambda target, start, stop: (np.array(target[:-1]), np.array(target[1:])),
    ),
    Mistake(
        "nothing is shifted: each place is to write what it has just read",
        "How would you write such a target if you saw its inputs, and what would you have learnt?",
        cut=[
            lambda target, start, stop: (np.array([start, *target]),) * 2,
            lambda target, start, stop: (np.array([*target, stop]),) * 2,
            lambda target, start, stop: (_whole(target, start, stop),) * 2,
            lambda target, start, stop: (np.array(target),) * 2,
        ],
    ),
    Mistake(
        "you shift the wrong way: each place is to write what came before it",
        "Which of the two begins with the start token, what is read or what is written?",
        cut=lambda target, start, stop: _frame(target, start, stop)[::-1],
    ),
    Mistake(
        "you shift by two: each place is to write the token after the next one",
        "After the start token, which token of the target comes next?",
        cut=lambda target, start, stop: (_whole(target, start, stop)[:-2], _whole(target, start, stop)[2:]),
    ),
    Mistake(
        "your shift goes round: the start token is to be written after the stop token",
        "Does anything follow the stop token? How many places do inputs and targets have then?",
        cut=lambda target, start, stop: (_whole(target, start, stop), np.roll(_whole(target, start, stop), -1)),
    ),
    Mistake(
        "start and stop token are swapped",
        "Which of them is read first, and which is written last?",
        cut=lambda target, start, stop: _frame(target, stop, start),
    ),
    Mistake(
        "you fill up on the left",
        "Position 0 belongs to the start token. Where does it stand in your rows?",
        fill=_on_the_left,
    ),
    Mistake(
        "is_target leaves the stop token out",
        "How many tokens does the decoder have to write for a target of three?",
        count=lambda targets: np.arange(len(targets)) < len(targets) - 1,
    ),
    Mistake(
        "is_target is False where the target holds the id 0, which is a token like any other",
        "An id cannot tell whether it is padding. What do you know of the target that can?",
        count=lambda targets: targets != 0,
    ),
    Mistake(
        "is_target is True everywhere: padding counts",
        "What should be written after the stop token, and who asks for it?",
        finish=lambda is_target: np.ones(len(is_target), bool),
    ),
]


def _case(name, target, start, stop, length, is_edge=False):
    return Case(name, {"target": np.array(target), "start": start, "stop": stop, "length": length}, is_edge)


EXERCISE = Exercise(
    teacher_forcing,
    MISTAKES,
    cases=[
        _case("5 tokens in a row of 9", [7, 0, 3, 7, 5], 1, 2, 9),
        _case("4 tokens in a row of 8", [4, 6, 0, 9], 8, 3, 8),
        _case("3 tokens in a row of 7", [0, 5, 4], 2, 6, 7),
        _case("a row that is just long enough", [5, 3, 8, 0], 1, 2, 5, is_edge=True),
        _case("a single token", [9], 3, 1, 6, is_edge=True),
    ],
    examples=[{"target": np.array([5, 0, 7]), "start": 1, "stop": 2, "length": 6}],
    result="(length,)",
    tried_on="a target of {target[0]} tokens, a row of {length}",
    parts=("inputs", "targets", "is_target"),
)
