"""The exercises of chapter 08; the wrong answers are written as a reader would, not with the catalogue's own steps."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint
from readers_answers_seq2seq import (
    attention,
    by_shares,
    causal,
    forced,
    masked,
    right_pair,
    right_smoothing,
    row_by_row,
)
from toy_translators import new_config

import plainformer as pf
from plainformer.exercises import EXERCISES, check, running, seq2seq

NAMES = list(seq2seq.EXERCISES)


def package_attention(target, source, is_source, query_weight, key_weight, value_weight):
    keys, values = source @ key_weight, source @ value_weight
    return pf.attend(target @ query_weight, keys, values, pf.padding_mask(is_source, len(target)))


def package_forcing(target, start, stop, length):
    config = new_config(vocab_size=99, context_len=20, start_token=start, stop_token=stop)
    *_, inputs, targets, is_target = pf.translation_batch([([1], target.tolist())], config, target_len=length)
    return inputs[0], targets[0], is_target[0]


def package_smoothing(logits, targets, epsilon):
    return pf.cross_entropy(logits, targets, label_smoothing=epsilon)


RIGHT = [
    ("cross_attention", row_by_row),
    ("cross_attention", attention(score=masked)),
    ("cross_attention", jax.jit(package_attention)),
    ("teacher_forcing", forced(right_pair)),
    ("teacher_forcing", package_forcing),
    ("label_smoothing", right_smoothing),
    ("label_smoothing", by_shares(lambda hot, size, epsilon: (1 - epsilon) * hot + epsilon / size)),
    ("label_smoothing", package_smoothing),
]


@pytest.mark.parametrize(("name", "function"), RIGHT)
def test_check_passes_right_answers(name, function, capsys):
    check(name, function)
    on = r"(a target \(4, 6\), a source \(7, 6\)|a target of 5 .* row of 9|5 tokens, a vocabulary of 7, epsilon 0\.1)"
    assert re.fullmatch(rf"{name}: passed [45] checks on {on}\n", capsys.readouterr().out)


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
        ("label_smoothing", lambda *given: jnp.zeros(5), r"shape \(5,\); expected a single number. Is a mean missing"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, function))


def test_check_names_two_mistakes_at_once():
    wrong = attention(score=lambda scores, there: causal(masked(scores, there)), scale=lambda d_k: 1)
    message = complaint("cross_attention", wrong).splitlines()[0]
    assert "you hide the future of the source" in message
    assert "; and your scores are not scaled" in message


def test_numbers_in_the_message_are_the_functions_own():
    wrong = attention()
    lines = [line.strip() for line in complaint("cross_attention", wrong).splitlines()]
    inputs = dict(line.split(" = ") for line in lines[1 : lines.index("you return")] if " = " in line)
    given = [eval(text) for text in inputs.values()]
    given = [jnp.array(value, bool if value[0] is True else jnp.float32) for value in given]
    for said, function in (("you return", wrong), ("it should be", row_by_row)):
        np.testing.assert_allclose(eval(lines[lines.index(said) + 1]), function(*given), atol=6e-4)


def test_examples_say_what_the_package_returns():
    package = dict(RIGHT)  # the last of each name
    for name in NAMES:
        for inputs in EXERCISES[name].examples():
            found = package[name](*(running.as_argument(value) for value in inputs.values()))
            found = np.stack(found) if isinstance(found, tuple) else found
            np.testing.assert_allclose(found, EXERCISES[name].answer(**inputs), atol=1e-4)


def test_inputs_tell_sizes_apart():
    for name, expected in {"cross_attention": 5, "label_smoothing": 2}.items():
        inputs = EXERCISES[name].cases()[0].inputs
        assert len({size for value in inputs.values() for size in np.shape(value)}) == expected
    inputs = EXERCISES["teacher_forcing"].cases()[0].inputs
    assert len({len(inputs["target"]), inputs["start"], inputs["stop"], inputs["length"]}) == 4
    assert 0 in inputs["target"]  # which is no padding
