"""The exercises of chapter 06; the wrong answers are written as a reader would, not with the catalogue's own steps."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint
from readers_answers_decoder import (
    as_parts,
    beam_step,
    candidates,
    divide,
    one_hot_mean,
    right_nucleus,
    surprise,
    tempered,
)

import plainformer as pf
from plainformer.exercises import EXERCISES, check, decoder, running

NAMES = list(decoder.EXERCISES)


def mean_surprise(logits, targets):
    return surprise(logits, targets).mean()


def shifted_loss(logits, tokens):
    return pf.cross_entropy(logits[:-1], tokens[1:])


def package_temperature(logits, temperature):
    return pf.next_token_probabilities(logits, temperature=temperature)


def package_top_p(probabilities, p):
    return pf.next_token_probabilities(jnp.log(probabilities), top_p=p)


def beam_step_in_jax(log_probs, next_log_probs, width):
    totals, places = jax.lax.top_k((log_probs[:, None] + next_log_probs).reshape(-1), width)
    return *jnp.divmod(places, next_log_probs.shape[1]), totals


RIGHT = [
    ("cross_entropy", mean_surprise),
    ("cross_entropy", lambda logits, targets: one_hot_mean(logits, targets) * logits.shape[1]),
    ("cross_entropy", pf.cross_entropy),
    ("next_token_loss", lambda logits, tokens: mean_surprise(logits[:-1], tokens[1:])),
    ("next_token_loss", jax.jit(shifted_loss)),
    ("temperature", tempered(divide)),
    ("temperature", lambda logits, t: jax.nn.softmax((logits - logits.max()) / max(t, 1e-8))),
    ("temperature", package_temperature),
    ("top_p", right_nucleus),
    ("top_p", package_top_p),
    ("beam_step", beam_step()),
    ("beam_step", lambda old, new, width: as_parts(candidates(old, new)[:width])),
    ("beam_step", beam_step_in_jax),
]


@pytest.mark.parametrize(("name", "function"), RIGHT)
def test_check_passes_right_answers(name, function, capsys):
    check(name, function)
    on = r"\d (tokens|beams), (a vocabulary of \d(, width \d)?|temperature 0\.\d|p = 0\.\d\d)"
    assert re.fullmatch(rf"{name}: passed [45] checks on {on}\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("cross_entropy", lambda logits, targets: mean_surprise(logits, targets) + 1, r"It is \d\.\d+ instead of \d"),
        ("cross_entropy", lambda logits, targets: jnp.inf, r"It is inf instead of \d"),
        ("cross_entropy", surprise, r"Your result has shape \(5,\); expected a single number. Is a mean missing\?"),
        ("next_token_loss", lambda logits, tokens: mean_surprise(logits, tokens) / 2, r"It is \d\.\d+ instead of \d"),
        ("temperature", lambda logits, t: logits, "You return logits unchanged"),
        ("temperature", lambda logits, t: 3 * package_temperature(logits, t), "Every number is 3 times"),
        ("temperature", lambda logits, t: (logits / t)[:2], r"shape \(2,\); expected"),
        ("temperature", lambda logits, t: logits / t, r"difference is at \(\d,\): "),
        ("top_p", lambda probabilities, p: probabilities, "You return probabilities unchanged"),
        (
            "beam_step",
            lambda old, new, width: (*beam_step_in_jax(old, new, width)[:2], jnp.zeros(width)),
            r"The largest difference is in new_log_probs at \(1,\): 0 instead of -\d",
        ),
        ("beam_step", lambda old, new, width: beam_step_in_jax(old, new, width)[:2], "of 2; expected 3 arrays"),
        (
            "beam_step",
            lambda old, new, width: beam_step_in_jax(old, new, 1),
            r"Your beams and tokens and new_log_probs have shape \(1,\); expected \(width,\) = \(2,\)",
        ),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, function))


def test_error_at_temperature_zero_is_the_readers_own():
    message = complaint("temperature", lambda logits, t: jax.nn.softmax(logits * (1 / t)))
    assert re.search(r"^temperature: your function raised ZeroDivisionError on line \d+", message)
    assert "The input was: temperature 0, where two logits are largest" in message


def test_check_names_two_mistakes_at_once():
    message = complaint("next_token_loss", lambda logits, tokens: surprise(logits, tokens).sum())
    assert "nothing is shifted" in message.splitlines()[0]
    assert "; and you add the surprises up" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = beam_step(total=lambda old, new: old[:, None] * new)
    lines = [line.strip() for line in complaint("beam_step", wrong).splitlines()]
    inputs = dict(line.split(" = ") for line in lines[1 : lines.index("you return")] if " = " in line)
    given = [np.array(eval(inputs[name]), np.float32) for name in ("log_probs", "next_log_probs")]
    for said, function in (("you return", wrong), ("it should be", beam_step_in_jax)):
        start = lines.index(said) + 1
        parts = [eval(line.split(" = ")[1]) for line in lines[start : start + 3]]
        for part, expected in zip(parts, function(*map(jnp.asarray, given), int(inputs["width"])), strict=True):
            np.testing.assert_allclose(part, expected, atol=6e-4)


def test_examples_say_what_the_package_returns():
    package = dict(RIGHT)  # the last of each name
    for name in NAMES:
        for inputs in EXERCISES[name].examples():
            arguments = [running.as_argument(value) for value in inputs.values()]
            np.testing.assert_allclose(package[name](*arguments), EXERCISES[name].answer(**inputs), atol=1e-4)


def test_inputs_tell_sizes_apart():
    expected = {"cross_entropy": 2, "next_token_loss": 2, "temperature": 2, "top_p": 2, "beam_step": 3}
    for name in NAMES:
        inputs = EXERCISES[name].cases()[0].inputs
        assert len({size for value in inputs.values() for size in np.shape(value) or [value]}) == expected[name]
