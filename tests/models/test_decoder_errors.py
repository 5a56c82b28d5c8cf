"""Chapter 06's decoder at its edges: sizes that do not fit, texts that are too long, and what a reader is told."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

KEY = jax.random.key(0)
SIZES = {"vocab_size": 11, "context_len": 5, "d_model": 12, "num_layers": 2, "num_heads": 3, "d_ff": 7}


def new_model(**options):
    return pf.Decoder(pf.DecoderConfig(**SIZES | options), key=KEY)


def test_decoder_takes_a_text_as_long_as_the_context():
    model = new_model()
    assert model(jnp.arange(5)).shape == (5, 11)
    rows, cache = model.extend(jnp.arange(5), model.new_cache())
    assert rows.shape == (5, 12)
    assert [int(part.length) for part in cache] == [5, 5]


def test_decoder_new_cache_has_the_room_that_is_asked_for():
    model = new_model(num_kv_heads=1)
    cache = model.new_cache(4, num_texts=2)
    assert [part.keys.shape for part in cache] == [(2, 4, 4)] * 2
    assert [part.values.shape for part in model.new_cache()] == [(1, 5, 4)] * 2


def read_twice():
    model = new_model()
    _, cache = model.extend(jnp.arange(3), model.new_cache(4))
    model.extend(jnp.arange(2), cache)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: new_model(vocab_size=0), ValueError, r"vocab_size is 0; expected at least 1"),
        (lambda: new_model(context_len=0), ValueError, r"context_len is 0; expected at least 1"),
        (lambda: new_model(num_layers=1.5), TypeError, r"num_layers is 1\.5; expected a whole number"),
        (lambda: new_model(num_layers=0), ValueError, r"num_layers is 0; expected at least 1"),
        (lambda: new_model(d_model=13), ValueError, r"d_model=13 is not a multiple of num_heads=3"),
        (
            lambda: new_model(d_model=9, positions="rotary"),
            ValueError,
            r"d_model=9 by num_heads=3 is odd; expected an even",
        ),
        (lambda: new_model(d_model=9, positions="sinusoidal"), ValueError, r"d_model is 9, an odd number"),
        (lambda: new_model(num_kv_heads=2), ValueError, r"num_heads=3 is not a multiple of num_kv_heads=2"),
        (lambda: new_model(d_ff=0), ValueError, r"d_ff is 0; expected at least 1"),
        (lambda: new_model(positions="rope"), ValueError, r"positions is 'rope'; expected one of 'learned', 'sinu"),
        (lambda: new_model(placement="both"), ValueError, r"placement is 'both'; expected one of 'pre', 'post'"),
        (lambda: new_model(norm="batch"), ValueError, r"norm is 'batch'; expected one of 'layer', 'rms'"),
        (lambda: new_model(activation="tanh"), ValueError, r"activation is 'tanh'; expected one of .*'swiglu'"),
        (lambda: new_model(dropout_rate=1.0), ValueError, r"dropout_rate is 1\.0; expected a probability"),
        (lambda: pf.training_flops(pf.DecoderConfig(**SIZES), 0), ValueError, r"num_tokens is 0; expected at least 1"),
        (lambda: new_model()(jnp.zeros(6, int)), ValueError, r"There are 6 tokens; expected 1 to context_len=5\. Keep"),
        (lambda: new_model()(jnp.zeros((2, 6), int)), ValueError, r"There are 6 tokens; expected 1 to context_len=5"),
        (lambda: new_model()(jnp.zeros(0, int)), ValueError, r"There are 0 tokens; expected 1 to .*at least one"),
        (
            lambda: new_model()(jnp.zeros((1, 2, 3), int)),
            ValueError,
            r"tokens has shape \(1, 2, 3\); expected \(seq,\)",
        ),
        (lambda: new_model()([1, 2]), TypeError, r"tokens is a list; expected an array .*jnp\.asarray\(tokens\)"),
        (lambda: new_model()(jnp.array([0, 11])), ValueError, r"11.*expected 0 to 10"),
        (lambda: new_model()(jnp.array([[0, -1]])), ValueError, r"-1.*expected 0 to 10"),
        (read_twice, ValueError, r"room for 4 tokens and holds 3; expected room for 2 more"),
        (
            lambda: new_model().extend(jnp.arange(2), new_model(num_layers=3).new_cache()),
            ValueError,
            r"The cache has 3 parts; expected 2: see new_cache\(\)",
        ),
        (
            lambda: new_model().extend(jnp.arange(2), new_model(num_kv_heads=1).new_cache()),
            ValueError,
            r"keys has shape \(3, 2, 4\); expected \(rows=1, seq, d_k=4\)",
        ),
        (
            lambda: new_model().extend(jnp.zeros((2, 1), int), new_model().new_cache(num_texts=3)),
            ValueError,
            r"tokens has shape \(2, 1\); expected \(num_texts=3, seq\)",
        ),
        (lambda: new_model().new_cache(0), ValueError, r"capacity is 0; expected at least 1"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"placement": "both"}, ValueError, r"placement is 'both'; expected one of 'pre', 'post'"),
        ({"norm": "batch"}, ValueError, r"norm is 'batch'; expected one of 'layer', 'rms'"),
        ({"activation": "tanh"}, ValueError, r"activation is 'tanh'; expected one of .*'swiglu'"),
        ({"dropout_rate": 1.0}, ValueError, r"dropout_rate is 1\.0; expected a probability"),
        ({"num_kv_heads": 2}, ValueError, r"num_heads=3 is not a multiple of num_kv_heads=2"),
        ({"num_kv_heads": 0}, ValueError, r"num_kv_heads is 0; expected at least 1"),
        ({"d_ff": 2.5}, TypeError, r"d_ff is 2\.5; expected a whole number"),
        ({"num_heads": None}, TypeError, r"num_heads is None; expected a whole number"),
        ({"use_bias": "no"}, TypeError, r"use_bias is 'no'; expected True or False"),
        ({"tied_embedding": 1}, TypeError, r"tied_embedding is 1; expected True or False"),
    ],
)
def test_decoder_config_names_what_is_wrong_before_a_model_is_made(options, error, message):
    with pytest.raises(error, match=message):
        pf.DecoderConfig(**SIZES | options)


def test_compiled_decoder_extend_names_a_full_cache():
    model = new_model(positions="rotary")
    extend = eqx.filter_jit(lambda model, tokens, cache: model.extend(tokens, cache))
    _, cache = extend(model, jnp.arange(3), model.new_cache(4))
    _, full = extend(model, jnp.arange(1), cache)
    assert [int(part.length) for part in full] == [4, 4]
    with pytest.raises(
        RuntimeError, match=r"The cache is full: .* 4 tokens in all; expected room for 2 more\. Make it lar"
    ):
        extend(model, jnp.arange(2), cache)
    with pytest.raises(RuntimeError, match=r"The cache is full"):
        jax.block_until_ready(extend(model, jnp.arange(1), full))


def test_decoder_names_a_position_outside_the_learned_table():
    model = new_model()
    with pytest.raises(ValueError, match=r"Position 5 is out of range; expected 0 to 4"):
        model.extend(jnp.zeros(2, int), model.new_cache(), jnp.array([4, 5]))


def test_decoder_config_is_one_value():
    config = pf.DecoderConfig(**SIZES)
    assert config == pf.DecoderConfig(**SIZES)
    assert hash(config) == hash(pf.DecoderConfig(**SIZES))
    assert config != pf.DecoderConfig(**SIZES | {"norm": "rms"})
    with pytest.raises(AttributeError):
        config.norm = "rms"
    assert np.isfinite(pf.Decoder(config, key=KEY)(jnp.arange(5))).all()
