"""The exercises of the chapter `seq2seq`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_seq2seq import attention, causal, forced, masked, right_pair, right_smoothing, row_by_row

from plainformer.exercises.registry import load_exercise


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("cross_attention", lambda *given: 2 * row_by_row(*given), "Every number is 2 times"),
        ("cross_attention", lambda *given: row_by_row(*given) + 1, r"The largest difference is at \(\d, \d\)"),
        ("cross_attention", lambda *given: row_by_row(*given).T, r"shape \(5, 4\); expected .*axes are in another"),
        ("cross_attention", lambda target, *rest: target, "You return target unchanged"),
        (
            "teacher_forcing",
            lambda target, start, stop, length: forced(right_pair)(target, 0, 0, length),
            r"The largest difference is in targets at \(5,\): 0 instead of 2",
        ),
        (
            "teacher_forcing",
            lambda *given: forced(right_pair)(*given)[:2],
            r"of 2; expected 3 arrays, inputs and targets and is_target",
        ),
        ("label_smoothing", lambda *given: right_smoothing(*given) + 1, r"It is \d\.\d+ instead of \d"),
        ("label_smoothing", lambda *given: np.zeros(5), r"shape \(5,\); expected a single number. Is a mean missing"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    wrong = attention(score=lambda scores, there: causal(masked(scores, there)), scale=lambda d_k: 1)
    message = complaint("cross_attention", in_numpy(wrong)).splitlines()[0]
    assert "you hide the future of the source" in message
    assert "; and your scores are not scaled" in message


def test_numbers_in_the_message_are_the_functions_own():
    wrong = attention()
    lines = [line.strip() for line in complaint("cross_attention", in_numpy(wrong)).splitlines()]
    inputs = dict(line.split(" = ") for line in lines[1 : lines.index("you return")] if " = " in line)
    given = [np.array(eval(text)) for text in inputs.values()]
    for said, function in (("you return", wrong), ("it should be", row_by_row)):
        np.testing.assert_allclose(eval(lines[lines.index(said) + 1]), function(*given), atol=6e-4)


def test_a_target_holds_the_id_zero():
    """Which is no padding."""
    assert 0 in load_exercise("teacher_forcing").cases[0].inputs["target"]
