"""Chapter 07, the encoder: texts that are empty, too long or all padding, and what a reader is told."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

KEY = jax.random.key(0)
SIZES = {"vocab_size": 11, "context_len": 5, "d_model": 12, "num_layers": 2, "num_heads": 3, "d_ff": 7}
ROWS = {"vocab_size": None, "d_in": 4}
call = eqx.filter_jit(lambda model, *arguments: model(*arguments))


def new_model(**options):
    return pf.Encoder(pf.EncoderConfig(**SIZES | options), key=KEY)


def test_encoder_takes_a_text_as_long_as_the_context_and_a_class_token_besides():
    assert new_model()(jnp.arange(5)).shape == (5, 12)
    assert new_model(class_token=True)(jnp.arange(5)).shape == (6, 12)
    assert new_model(class_token=True)(jnp.array([[7]])).shape == (1, 2, 12)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: new_model()(jnp.zeros(6, int)), ValueError, r"There are 6 tokens; expected 1 to context_len=5\. Cut"),
        (lambda: new_model(class_token=True)(jnp.zeros(6, int)), ValueError, r"There are 6 tokens; expected 1 to .*=5"),
        (lambda: new_model()(jnp.zeros((2, 6), int)), ValueError, r"There are 6 tokens; expected 1 to context_len=5"),
        (lambda: new_model(positions="alibi")(jnp.zeros(6, int)), ValueError, r"There are 6 tokens; expected 1 to"),
        (lambda: new_model()(jnp.zeros(0, int)), ValueError, r"There are 0 tokens; expected 1 to .*at least one"),
        (lambda: new_model()(jnp.zeros((0, 2), int)), ValueError, r"There are 0 texts; expected at least one"),
        (lambda: new_model()(jnp.zeros((2, 0), int)), ValueError, r"There are 0 tokens; expected 1 to .*at least one"),
        (
            lambda: new_model()(jnp.zeros((1, 2, 3), int)),
            ValueError,
            r"inputs has shape \(1, 2, 3\); expected \(seq,\)",
        ),
        (lambda: new_model()([1, 2]), TypeError, r"inputs is a list; expected an array .*jnp\.asarray\(inputs\)"),
        (lambda: new_model()(jnp.array([0, 11])), ValueError, r"ids\[1\] is 11; expected 0 to 10"),
        (lambda: new_model()(jnp.array([[0, -1]])), ValueError, r"-1; expected 0 to 10"),
        (lambda: new_model()(jnp.zeros(3)), TypeError, r"ids are float32; expected whole numbers"),
        (
            lambda: new_model(**ROWS)(jnp.zeros((3, 5))),
            ValueError,
            r"inputs has shape \(3, 5\); expected \(seq, d_in=4\)",
        ),
        (lambda: new_model(**ROWS)(jnp.zeros((4, 3))), ValueError, r"expected \(seq, d_in=4\)"),
        (lambda: new_model(**ROWS)(jnp.zeros((2, 3, 5))), ValueError, r"expected \(num_texts, seq, d_in=4\)"),
        (lambda: new_model(**ROWS)(jnp.zeros((0, 4))), ValueError, r"There are 0 tokens"),
        (lambda: new_model(**ROWS)(jnp.zeros((3, 4), int)), TypeError, r"inputs holds int.*; expected floats"),
        (
            lambda: new_model()(jnp.zeros((2, 3), int), jnp.array([[True, True, False], [False] * 3])),
            ValueError,
            r"Text 1 is all padding; expected at least one token in each\. Leave it out",
        ),
        (lambda: new_model()(jnp.zeros(3, int), jnp.zeros(3, bool)), ValueError, r"Text 0 is all padding"),
        (
            lambda: new_model(class_token=True)(jnp.zeros(3, int), jnp.zeros(3, bool)),
            ValueError,
            r"Text 0 is all padding",
        ),
        (
            lambda: new_model()(jnp.zeros((2, 3), int), jnp.ones((3, 2), bool)),
            ValueError,
            r"is_token has shape \(3, 2\); expected \(num_texts=2, seq=3\)\. One for each token",
        ),
        (lambda: new_model()(jnp.zeros(3, int), jnp.ones((1, 3), bool)), ValueError, r"is_token has shape \(1, 3\)"),
        (
            lambda: new_model()(jnp.zeros(3, int), jnp.ones(3)),
            TypeError,
            r"is_token holds float32; expected bool, True for a token, False for padding",
        ),
        (lambda: new_model()(jnp.zeros(3, int), [True] * 3), TypeError, r"is_token is a list; expected an array"),
        (
            lambda: new_model(num_segments=2)(jnp.zeros(3, int)),
            ValueError,
            r"segments are missing; this encoder, with num_segments=2, wants one of 2 numbers for each token",
        ),
        (
            lambda: new_model()(jnp.zeros(3, int), None, jnp.zeros(3, int)),
            ValueError,
            r"segments are given; this encoder, with num_segments=0, wants none",
        ),
        (
            lambda: new_model(num_segments=2)(jnp.zeros(3, int), None, jnp.zeros(2, int)),
            ValueError,
            r"segments has shape \(2,\); expected \(seq=3,\)",
        ),
        (
            lambda: new_model(num_segments=2)(jnp.zeros(3, int), None, jnp.array([0, 1, 2])),
            ValueError,
            r"ids\[2\] is 2; expected 0 to 1",
        ),
        (
            lambda: new_model().weights(jnp.zeros((2, 3), int)),
            ValueError,
            r"There are 2 texts; expected a single one: use jax\.vmap",
        ),
        (lambda: new_model().weights(jnp.zeros(3, int), jnp.zeros(3, bool)), ValueError, r"Text 0 is all padding"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("class_token", [False, True])
def test_compiled_encoder_names_a_text_that_is_all_padding(class_token):
    model, tokens = new_model(class_token=class_token), jnp.zeros((2, 3), int)
    is_token = jnp.array([[True, False, False], [True, True, False]])
    assert np.isfinite(call(model, tokens, is_token)).all()
    with pytest.raises(
        RuntimeError, match=r"A text is all padding; expected at least one token in each\. Leave it out"
    ):
        jax.block_until_ready(call(model, tokens, is_token.at[1].set(False)))


def test_compiled_encoder_names_ids_and_segments_out_of_range():
    model, tokens = new_model(num_segments=2), jnp.array([3, 10, 0])
    assert call(model, tokens, None, jnp.array([0, 1, 1])).shape == (3, 12)
    with pytest.raises(RuntimeError, match=r"A token id is out of range; expected 0 to 10"):
        jax.block_until_ready(call(model, tokens + 1, None, jnp.array([0, 1, 1])))
    with pytest.raises(RuntimeError, match=r"A token id is out of range; expected 0 to 1\."):
        jax.block_until_ready(call(model, tokens, None, jnp.array([0, 1, 2])))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"vocab_size": None}, ValueError, r"vocab_size is None and d_in is None; expected one of them"),
        ({"d_in": 4}, ValueError, r"vocab_size is 11 and d_in is 4; expected one of them: vocab_size for texts"),
        ({"vocab_size": 0}, ValueError, r"vocab_size is 0; expected at least 1"),
        ({"vocab_size": None, "d_in": 0}, ValueError, r"d_in is 0; expected at least 1"),
        ({"context_len": 0}, ValueError, r"context_len is 0; expected at least 1"),
        ({"num_layers": 1.5}, TypeError, r"num_layers is 1\.5; expected a whole number"),
        ({"num_heads": None}, TypeError, r"num_heads is None; expected a whole number"),
        ({"d_model": 13}, ValueError, r"d_model=13 is not a multiple of num_heads=3"),
        ({"d_model": 9, "positions": "rotary"}, ValueError, r"d_model=9 by num_heads=3 is odd; expected an even"),
        ({"d_ff": 2.5}, TypeError, r"d_ff is 2\.5; expected a whole number"),
        ({"num_segments": -1}, ValueError, r"num_segments is -1; expected at least 1"),
        ({"num_segments": 1.5}, TypeError, r"num_segments is 1\.5; expected a whole number"),
        ({"positions": "rope"}, ValueError, r"positions is 'rope'; expected one of 'learned', 'sinu"),
        ({"placement": "both"}, ValueError, r"placement is 'both'; expected one of 'pre', 'post'"),
        ({"norm": "batch"}, ValueError, r"norm is 'batch'; expected one of 'layer', 'rms'"),
        ({"activation": "tanh"}, ValueError, r"activation is 'tanh'; expected one of .*'swiglu'"),
        ({"dropout_rate": 1.0}, ValueError, r"dropout_rate is 1\.0; expected a probability"),
        ({"class_token": 1}, TypeError, r"class_token is 1; expected True or False"),
        ({"embedding_norm": "yes"}, TypeError, r"embedding_norm is 'yes'; expected True or False"),
        ({"use_bias": None}, TypeError, r"use_bias is None; expected True or False"),
    ],
)
def test_encoder_config_names_what_is_wrong_before_a_model_is_made(options, error, message):
    with pytest.raises(error, match=message):
        pf.EncoderConfig(**SIZES | options)


def test_encoder_config_is_one_value():
    config = pf.EncoderConfig(**SIZES)
    assert config == pf.EncoderConfig(**SIZES)
    assert hash(config) == hash(pf.EncoderConfig(**SIZES))
    assert config != pf.EncoderConfig(**SIZES | {"norm": "rms"})
    with pytest.raises(AttributeError):
        config.norm = "rms"
