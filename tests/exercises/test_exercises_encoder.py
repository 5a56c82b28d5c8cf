"""The exercises of chapter 07; the wrong answers are written as a reader would, not with the catalogue's own steps."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint
from readers_answers_encoder import hidden, pooled, right_loss

import plainformer as pf
from plainformer.exercises import EXERCISES, check, encoder, running

NAMES = list(encoder.EXERCISES)


def mask_in_jax(tokens, is_token, select, fate, draw, vocab_size):
    chosen = is_token & (tokens >= 3) & (select < 0.15)
    other = 3 + jnp.floor(draw * (vocab_size - 3)).astype(int)
    changed = jnp.where(fate < 0.8, 2, jnp.where(fate < 0.9, other, tokens))
    return jnp.where(chosen, changed, tokens), chosen


def loss_in_jax(logits, targets, is_selected):
    surprise = -jax.nn.log_softmax(logits)[jnp.arange(len(targets)), targets]
    return jnp.where(is_selected, surprise, 0).sum() / jnp.maximum(is_selected.sum(), 1).astype(float)


RIGHT = [
    ("mask_tokens", hidden()),
    ("mask_tokens", mask_in_jax),
    ("masked_token_loss", right_loss),
    ("masked_token_loss", jax.jit(loss_in_jax)),
    ("masked_token_loss", pf.cross_entropy),
    ("mean_pool", pooled),
    ("mean_pool", pf.mean_pool),
]


@pytest.mark.parametrize(("name", "function"), RIGHT)
def test_check_passes_right_answers(name, function, capsys):
    check(name, function)
    on = r"\d+ (tokens, a vocabulary of \d+|texts, \d rows each, of width \d)"
    assert re.fullmatch(rf"{name}: passed 5 checks on {on}\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        (
            "mask_tokens",
            lambda tokens, is_token, *rest: (tokens, is_token),
            r"The largest difference is in corrupted at \(\d+,\): \d+ instead of \d+",
        ),
        ("mask_tokens", lambda *given: mask_in_jax(*given)[0], r"of \d+; expected 2 arrays, corrupted and is_selected"),
        (
            "mask_tokens",
            lambda *given: [part[1:] for part in mask_in_jax(*given)],
            r"Your corrupted and is_selected have shape \(14,\); expected \(seq,\) = \(15,\)",
        ),
        ("masked_token_loss", lambda *given: loss_in_jax(*given) + 1, r"It is \d\.\d+ instead of \d"),
        ("masked_token_loss", lambda logits, targets, yes: jnp.zeros(8), r"shape \(8,\); expected a single number"),
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
    assert re.search(says, complaint(name, function))


def test_check_names_two_mistakes_at_once():
    message = complaint("mask_tokens", hidden(may=lambda token, yes: yes, note=lambda token, became: became == 2))
    assert "special tokens are hidden" in message.splitlines()[0]
    assert "; and is_selected is True only where the mask stands" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = hidden(ids=lambda lot, number, size: int(number * size))
    lines = [line.strip() for line in complaint("mask_tokens", wrong).splitlines()]
    inputs = dict(line.split(" = ") for line in lines[1 : lines.index("you return")] if " = " in line)
    given = [running.as_argument(np.array(eval(inputs[name]))) for name in list(inputs)[:-1]]
    for said, function in (("you return", wrong), ("it should be", mask_in_jax)):
        start = lines.index(said) + 1
        parts = [eval(line.split(" = ")[1]) for line in lines[start : start + 2]]
        for part, expected in zip(parts, function(*given, int(inputs["vocab_size"])), strict=True):
            np.testing.assert_array_equal(part, expected)


def test_examples_say_what_the_package_returns():
    package = dict(RIGHT)  # the last of each name
    for name in NAMES:
        for inputs in EXERCISES[name].examples():
            arguments = [running.as_argument(value) for value in inputs.values()]
            answer = EXERCISES[name].answer(**inputs)
            found = package[name](*arguments)
            np.testing.assert_allclose(np.stack(found) if isinstance(found, tuple) else found, answer, atol=1e-4)


def test_inputs_tell_sizes_apart():
    for name, expected in {"mask_tokens": 2, "masked_token_loss": 2, "mean_pool": 3}.items():
        inputs = EXERCISES[name].cases()[0].inputs
        assert len({size for value in inputs.values() for size in np.shape(value) or [value]}) == expected


def test_inputs_show_every_fate_of_every_kind_of_token():
    inputs = EXERCISES["mask_tokens"].cases()[0].inputs
    chosen = inputs["is_token"] & (inputs["tokens"] >= 3) & (inputs["select"] < 0.15)
    fates = inputs["fate"][chosen]
    assert [((fates >= low) & (fates < high)).any() for low, high in [(0, 0.8), (0.8, 0.9), (0.9, 1)]] == [True] * 3
    assert (inputs["select"][inputs["tokens"] < 3] < 0.15).all()
    assert (inputs["select"][~inputs["is_token"]] < 0.15).any()
