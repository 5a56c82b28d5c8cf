"""The exercises of chapter 04; the wrong answers are written as a reader would, not with the catalogue's own steps."""

import math
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_blocks import bent, relu, z

import plainformer as pf
from plainformer.exercises import EXERCISES, blocks, check

NAMES = list(blocks.EXERCISES)


def layer_norm(x, scale, bias, eps):
    centred = x - jnp.mean(x, axis=1)[:, None]
    return centred / jnp.sqrt(jnp.var(x, axis=1)[:, None] + eps) * scale[None] + bias[None]


def layer_norm_in_loops(x, scale, bias, eps):
    result = np.zeros(x.shape)
    for n, row in enumerate(x.astype(float)):
        mean = sum(row) / len(row)
        root = math.sqrt(sum((number - mean) ** 2 for number in row) / len(row) + eps)
        result[n] = [(number - mean) / root * s + b for number, s, b in zip(row, scale, bias, strict=True)]
    return result


def package_layer_norm(x, scale, bias, eps):
    layer = pf.LayerNorm(x.shape[1], eps=eps)
    return eqx.tree_at(lambda layer: (layer.scale, layer.bias), layer, (scale, bias))(x)


def feed_forward_in_loops(x, w_in, b_in, w_out, b_out):
    hidden = [[max(0.0, row @ w + b) for w, b in zip(w_in.T, b_in, strict=True)] for row in x]
    return np.array(hidden) @ w_out + b_out


def package_feed_forward(x, w_in, b_in, w_out, b_out):
    layer = pf.FeedForward(*w_in.shape, activation="relu", key=jax.random.key(0))
    weights = (w_in, b_in, w_out, b_out)
    return eqx.tree_at(lambda f: (f.in_weight, f.in_bias, f.out_weight, f.out_bias), layer, weights)(x)


def block(x, attention, feed_forward, attention_norm, feed_forward_norm):
    y = x + attention(attention_norm(x))
    return y + feed_forward(feed_forward_norm(y))


def package_block(x, attention, feed_forward, attention_norm, feed_forward_norm):
    return pf.pre_norm(pf.pre_norm(x, attention_norm, attention), feed_forward_norm, feed_forward)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("layer_norm", jax.jit(layer_norm)),
        ("layer_norm", in_numpy(layer_norm_in_loops)),
        ("layer_norm", jax.jit(package_layer_norm, static_argnums=3)),
        ("feed_forward", bent(jax.nn.relu)),
        ("feed_forward", in_numpy(feed_forward_in_loops)),
        ("feed_forward", jax.jit(package_feed_forward)),
        ("pre_norm_block", block),
        ("pre_norm_block", in_numpy(block)),
        ("pre_norm_block", lambda x, *functions: jax.jit(lambda x: block(x, *functions))(x)),
        ("pre_norm_block", package_block),
    ],
)
def test_check_passes_right_answers(name, function, capsys):
    check(name, function)
    assert re.fullmatch(rf"{name}: passed \d checks on 5 tokens, \d \w+\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("layer_norm", lambda x, scale, bias, eps: x, "You return x unchanged"),
        ("layer_norm", lambda x, scale, bias, eps: 2 * layer_norm(x, scale, bias, eps), "Every number is 2 times"),
        (
            "layer_norm",
            lambda x, scale, bias, eps: layer_norm(x, scale, bias, eps).at[0, 2].add(3),
            r"not right yet for more tokens than features, with x \(5, 4\), scale \(4,\), bias \(4,\), eps 0.001.\n"
            r"The largest difference is at \(0, 2\): [-.\d]+ instead of [-.\d]+",
        ),
        ("feed_forward", lambda *given: bent(jax.nn.relu)(*given).at[1, 3].add(1), r"difference is at \(1, 3\): "),
        ("pre_norm_block", lambda x, *functions: block(x, *functions).at[2, 1].add(1), r"difference is at \(2, 1\): "),
        ("pre_norm_block", lambda x, a, f, n, m: jnp.mean(block(x, a, f, n, m)), "Did you sum over everything"),
        ("pre_norm_block", lambda x, a, f, n, m: a, "returned a Function"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, function))


def test_check_names_two_mistakes_at_once():
    message = complaint("feed_forward", in_numpy(lambda x, w_in, b_in, w_out, b_out: relu(x @ w_in) @ w_out))
    assert message.startswith("feed_forward: b_in plays no part; and b_out plays no part.\nWith\n")
    message = complaint("layer_norm", in_numpy(lambda x, scale, bias, eps: z(x, 0) * scale))
    assert "eps plays no part; and bias plays no part" in message


def test_functions_are_shown_as_they_would_be_typed():
    message = complaint("pre_norm_block", lambda x, a, f, n, m: x + f(m(x + a(n(x)))))
    assert "\n    attention_norm = lambda rows: rows - 2\n" in message
    for inputs in EXERCISES["pre_norm_block"].examples():
        rows = np.arange(6.0).reshape(3, 2)
        for function in list(inputs.values())[1:]:
            np.testing.assert_allclose(eval(repr(function))(rows), function(rows))


def test_numbers_in_the_message_are_the_functions_own():
    def first_norm_twice(x, attention, feed_forward, norm, other):
        return block(x, attention, feed_forward, norm, norm)

    lines = complaint("pre_norm_block", first_norm_twice).splitlines()
    stated = dict(line.strip().split(" = ") for line in lines[2:7])
    arguments = [np.array(eval(stated["x"])), *(eval(text) for text in list(stated.values())[1:])]
    assert list(stated) == ["x", "attention", "feed_forward", "attention_norm", "feed_forward_norm"]
    np.testing.assert_allclose(eval(lines[lines.index("you return") + 1]), first_norm_twice(*arguments))
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), block(*arguments))


def test_examples_by_hand():
    """Two rows, their standardised forms, and a block of units, tens and hundreds."""
    plain = EXERCISES["layer_norm"].examples()[0]
    np.testing.assert_allclose(EXERCISES["layer_norm"].answer(**plain), [[-1, 1], [-1, 1], [1, -1]])
    network = EXERCISES["feed_forward"].examples()[0]  # hidden: (2, 1) and (0, 4)
    np.testing.assert_allclose(EXERCISES["feed_forward"].answer(**network), [[90], [370]])
    whole = EXERCISES["pre_norm_block"].examples()[0]  # after attention: 33 and 15
    np.testing.assert_allclose(EXERCISES["pre_norm_block"].answer(**whole), [[3033], [1215]])


def test_inputs_tell_sizes_apart():
    for name, sizes in {"layer_norm": {5, 4}, "feed_forward": {5, 4, 8}, "pre_norm_block": {5, 4}}.items():
        inputs = EXERCISES[name].cases()[0].inputs
        assert {size for value in inputs.values() for size in np.shape(value)} == sizes
