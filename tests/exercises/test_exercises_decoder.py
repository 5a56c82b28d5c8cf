"""The exercises of the chapter `decoder`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy, softmax
from readers_answers_decoder import beam_step, divide, surprise, tempered

right_step, right_temperature = beam_step(), tempered(divide)


def mean_surprise(logits, targets):
    return surprise(logits, targets).mean()


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("cross_entropy", lambda logits, targets: mean_surprise(logits, targets) + 1, r"It is \d\.\d+ instead of \d"),
        ("cross_entropy", lambda logits, targets: np.inf, r"It is inf instead of \d"),
        ("cross_entropy", surprise, r"Your result has shape \(5,\); expected a single number. Is a mean missing\?"),
        ("next_token_loss", lambda logits, tokens: mean_surprise(logits, tokens) / 2, r"It is \d\.\d+ instead of \d"),
        ("temperature", lambda logits, t: logits, "You return logits unchanged"),
        ("temperature", lambda logits, t: 3 * right_temperature(logits, t), "Every number is 3 times"),
        ("temperature", lambda logits, t: (logits / t)[:2], r"shape \(2,\); expected"),
        ("temperature", lambda logits, t: logits / t, r"difference is at \(\d,\): "),
        ("top_p", lambda probabilities, p: probabilities, "You return probabilities unchanged"),
        (
            "beam_step",
            lambda old, new, width: (*right_step(old, new, width)[:2], np.zeros(width)),
            r"The largest difference is in new_log_probs at \(1,\): 0 instead of -\d",
        ),
        ("beam_step", lambda old, new, width: right_step(old, new, width)[:2], "of 2; expected 3 arrays"),
        (
            "beam_step",
            lambda old, new, width: right_step(old, new, 1),
            r"Your beams and tokens and new_log_probs have shape \(1,\); expected \(width,\) = \(2,\)",
        ),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_error_at_temperature_zero_is_the_readers_own():
    message = complaint("temperature", lambda logits, t: softmax(np.asarray(logits) * (1 / t)))
    assert re.search(r"^temperature: your function raised ZeroDivisionError on line \d+", message)
    assert "The input was: temperature 0, where two logits are largest" in message


def test_check_names_two_mistakes_at_once():
    message = complaint("next_token_loss", in_numpy(lambda logits, tokens: surprise(logits, tokens).sum()))
    assert "nothing is shifted" in message.splitlines()[0]
    assert "; and you add the surprises up" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = beam_step(total=lambda old, new: old[:, None] * new)
    lines = [line.strip() for line in complaint("beam_step", in_numpy(wrong)).splitlines()]
    inputs = dict(line.split(" = ") for line in lines[1 : lines.index("you return")] if " = " in line)
    given = [np.array(eval(inputs[name]), np.float32) for name in ("log_probs", "next_log_probs")]
    for said, function in (("you return", wrong), ("it should be", right_step)):
        start = lines.index(said) + 1
        parts = [eval(line.split(" = ")[1]) for line in lines[start : start + 3]]
        for part, expected in zip(parts, function(*given, int(inputs["width"])), strict=True):
            np.testing.assert_allclose(part, expected, atol=6e-4)
