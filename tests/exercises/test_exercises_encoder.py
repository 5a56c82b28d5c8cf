"""The exercises of the chapter `encoder`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_encoder import hidden, pooled, right_loss

from plainformer.exercises.registry import load_exercise

right_masking = hidden()


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        (
            "mask_tokens",
            lambda tokens, is_token, *rest: (tokens, is_token),
            r"The largest difference is in corrupted at \(\d+,\): \d+ instead of \d+",
        ),
        (
            "mask_tokens",
            lambda *given: right_masking(*given)[0],
            r"of \d+; expected 2 arrays, corrupted and is_selected",
        ),
        (
            "mask_tokens",
            lambda *given: [part[1:] for part in right_masking(*given)],
            r"Your corrupted and is_selected have shape \(14,\); expected \(seq,\) = \(15,\)",
        ),
        ("masked_token_loss", lambda *given: right_loss(*given) + 1, r"It is \d\.\d+ instead of \d"),
        ("masked_token_loss", lambda logits, targets, yes: np.zeros(8), r"shape \(8,\); expected a single number"),
        ("mean_pool", lambda rows, is_token: rows, "You return rows unchanged"),
        ("mean_pool", lambda rows, is_token: 2 * pooled(rows, is_token), "Every number is 2 times"),
        (
            "mean_pool",
            lambda rows, is_token: pooled(rows, is_token).T,
            r"shape \(4, 3\); expected .*axes are in another",
        ),
        ("mean_pool", lambda rows, is_token: pooled(rows, is_token) + 1, r"The largest difference is at \(\d, \d\)"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    message = complaint(
        "mask_tokens", in_numpy(hidden(may=lambda token, yes: yes, note=lambda token, became: became == 2))
    )
    assert "special tokens are hidden" in message.splitlines()[0]
    assert "; and is_selected is True only where the mask stands" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = hidden(ids=lambda lot, number, size: int(number * size))
    lines = [line.strip() for line in complaint("mask_tokens", in_numpy(wrong)).splitlines()]
    inputs = dict(line.split(" = ") for line in lines[1 : lines.index("you return")] if " = " in line)
    given = [np.array(eval(inputs[name])) for name in list(inputs)[:-1]]
    for said, function in (("you return", wrong), ("it should be", right_masking)):
        start = lines.index(said) + 1
        parts = [eval(line.split(" = ")[1]) for line in lines[start : start + 2]]
        for part, expected in zip(parts, function(*given, int(inputs["vocab_size"])), strict=True):
            np.testing.assert_array_equal(part, expected)


def test_inputs_show_every_fate_of_every_kind_of_token():
    inputs = load_exercise("mask_tokens").cases[0].inputs
    chosen = inputs["is_token"] & (inputs["tokens"] >= 3) & (inputs["select"] < 0.15)
    fates = inputs["fate"][chosen]
    assert [((fates >= low) & (fates < high)).any() for low, high in [(0, 0.8), (0.8, 0.9), (0.9, 1)]] == [True] * 3
    assert (inputs["select"][inputs["tokens"] < 3] < 0.15).all()
    assert (inputs["select"][~inputs["is_token"]] < 0.15).any()
