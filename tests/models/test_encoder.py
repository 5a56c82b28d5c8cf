"""The encoder: what it computes, that all tokens see each other and nobody padding, and what it adds."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from flat import encoder_config
from toy_models import drawn

import plainformer as pf
from plainformer.models.encoder import make_encoder

VOCAB, CONTEXT, SEQ, D_MODEL, HEADS, D_FF, D_IN, TEXTS, SEGMENTS = 11, 9, 7, 24, 6, 10, 5, 3, 2
LENGTHS = [7, 4, 2]
MODERN = {"norm": "rms", "activation": "swiglu", "use_bias": False}
TOKENS, ROWS = {"vocab_size": VOCAB}, {"d_in": D_IN}
KINDS = {
    "learned": {**TOKENS},
    "bert": {**TOKENS, "norm_placement": "post", "embedding_norm": True, "num_segments": SEGMENTS},
    "sinusoidal-class": {**TOKENS, "position_scheme": "sinusoidal", "use_class_token": True},
    "rotary-modern-embedding-norm": {**TOKENS, "position_scheme": "rotary", "embedding_norm": True, **MODERN},
    "relative-post": {**TOKENS, "position_scheme": "relative", "norm_placement": "post"},
    "alibi-segments-class": {
        **TOKENS,
        "position_scheme": "alibi",
        "num_segments": SEGMENTS,
        "use_class_token": True,
    },
    "rows-learned-class": {**ROWS, "use_class_token": True, "activation": "gelu_tanh"},
    "rows-sinusoidal-post": {**ROWS, "position_scheme": "sinusoidal", "norm_placement": "post", "use_bias": False},
}
KEY = jax.random.key(20170612)
NUMBERS = np.random.default_rng(8)
IDS = NUMBERS.integers(VOCAB, size=(TEXTS, SEQ))
VECTORS = NUMBERS.normal(size=(TEXTS, SEQ, D_IN)).astype(np.float32)
SEGMENT_IDS = NUMBERS.integers(SEGMENTS, size=(TEXTS, SEQ))
PADDED = np.arange(SEQ) < np.array(LENGTHS)[:, None]  # which tokens of three texts of unequal length are none
IS_TOKEN = jnp.asarray(PADDED)
call = eqx.filter_jit(lambda model, *arguments: model(*arguments))


@functools.cache
def new_model(kind="learned", **fields):
    """An encoder with all its parameters drawn: biases of zero would hide a slip, small positions an offset."""
    sizes = {"context_len": CONTEXT, "d_model": D_MODEL, "num_layers": 2, "num_heads": HEADS, "d_ff": D_FF}
    return drawn(make_encoder, encoder_config(**sizes | KINDS[kind] | fields))


def inputs_of(model, text=slice(None), length=SEQ):
    """Ids or rows of numbers of the first tokens of a text, and their segments if the model has any."""
    inputs = IDS[text, ..., :length] if model.config.d_in is None else VECTORS[text, ..., :length, :]
    segments = jnp.asarray(SEGMENT_IDS[text, ..., :length]) if model.config.num_segments else None
    return jnp.asarray(inputs), segments


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize("kind", KINDS)
def test_encoder_of_padded_texts_is_each_text_alone(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model)
    together = np.asarray(model(inputs, IS_TOKEN, segments))
    assert together.shape == (TEXTS, SEQ + model.config.use_class_token, D_MODEL)
    assert np.isfinite(together).all()
    for text, length in enumerate(LENGTHS):
        alone, its_segments = inputs_of(model, text, length)
        end = length + model.config.use_class_token
        assert_close(together[text, :end], reference.encoder(alone, model, its_segments))


@pytest.mark.equation("eq-encoder-model")
def test_encoder_takes_padded_texts_and_segments_in_a_batch_of_any_rank():
    model = new_model("alibi-segments-class")
    inputs, segments = inputs_of(model)
    found = call(model, *(jnp.stack([each, each[::-1]]) for each in (inputs, IS_TOKEN, segments)))
    expected = np.asarray(model(inputs, IS_TOKEN, segments))
    kept = np.pad(PADDED, ((0, 0), (1, 0)), constant_values=True)
    assert_close(np.asarray(found[0])[kept], expected[kept])
    assert_close(np.asarray(found[1])[kept[::-1]], expected[::-1][kept[::-1]])


@pytest.mark.parametrize("kind", ["bert", "rows-learned-class"])
def test_encoder_without_is_token_takes_all_for_tokens(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model)
    assert_close(model(inputs, None, segments), model(inputs, jnp.ones((TEXTS, SEQ), bool), segments))


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize("kind", ["relative-post", "rows-learned-class"])
def test_encoder_is_not_reached_by_what_stands_in_padding(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model)
    is_text = model.config.d_in is None
    changed = np.where(PADDED, IDS, (IDS + 1) % VOCAB) if is_text else np.where(PADDED[..., None], VECTORS, np.nan)
    changed = jnp.asarray(changed)
    kept = np.pad(PADDED, ((0, 0), (model.config.use_class_token, 0)), constant_values=True)
    found, expected = (np.asarray(model(each, IS_TOKEN, segments)) for each in (changed, inputs))
    np.testing.assert_array_equal(found[kept], expected[kept])
    if is_text:
        assert (np.abs(found[~kept] - expected[~kept]).max(axis=1) > 1e-4).all()
    else:  # gradients would hold NaN if a slope of 0 met the NaN of padding
        slopes = eqx.filter_jit(eqx.filter_grad(lambda model: model(changed, IS_TOKEN)[kept].sum()))(model)
        assert all(np.isfinite(slope).all() for slope in jax.tree.leaves(slopes))


def test_encoder_weights_give_padding_nothing():
    model = new_model("alibi-segments-class")
    weights = np.asarray(model.attention_weights(jnp.asarray(IDS), IS_TOKEN, jnp.asarray(SEGMENT_IDS)))
    assert weights.shape == (TEXTS, 2, HEADS, SEQ + 1, SEQ + 1)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    for text, length in enumerate(LENGTHS):
        end = length + 1
        assert (weights[text, ..., end:] == 0.0).all()
        assert (weights[text, ..., :end] > 0).all()
    inputs, segments = inputs_of(model, 1, LENGTHS[1])
    alone, end = model.attention_weights(inputs, None, segments), LENGTHS[1] + 1
    np.testing.assert_allclose(weights[1, :, :, :end, :end], alone, atol=1e-5)


def test_encoder_has_as_many_parameters_as_counted_by_hand():
    def count(kind):
        sizes = {"context_len": CONTEXT, "d_model": D_MODEL, "num_layers": 5, "num_heads": HEADS, "d_ff": D_FF}
        config = encoder_config(**sizes | KINDS[kind])
        return pf.count_parameters(eqx.filter_eval_shape(lambda key: make_encoder(config, key=key), KEY))

    block = 4 * (24 * 24 + 24) + (24 * 10 + 10) + (10 * 24 + 24) + 2 * 48
    assert count("learned") == 11 * 24 + 9 * 24 + 5 * block + 48
    assert count("bert") == 11 * 24 + 2 * 24 + 9 * 24 + 48 + 5 * block
    assert count("rows-learned-class") == 5 * 24 + 24 + 24 + 10 * 24 + 5 * block + 48
    assert count("sinusoidal-class") == 11 * 24 + 24 + 5 * block + 48
    modern = 4 * 24 * 24 + 3 * 24 * 10 + 2 * 24
    assert count("rotary-modern-embedding-norm") == 11 * 24 + 24 + 5 * modern + 24


# --- at its edges: texts that are empty, too long or all padding, and what a reader is told ------------------


def test_encoder_takes_a_text_as_long_as_the_context_and_a_class_token_besides():
    assert new_model("sinusoidal-class")(jnp.arange(CONTEXT)).shape == (CONTEXT + 1, D_MODEL)
    assert new_model("sinusoidal-class")(jnp.array([[7]])).shape == (1, 2, D_MODEL)


def test_encoder_reads_arrays_of_numpy():
    model = new_model("bert")
    expected = model(jnp.asarray(IDS), IS_TOKEN, jnp.asarray(SEGMENT_IDS))
    np.testing.assert_array_equal(model.residual_stream(IDS, PADDED, SEGMENT_IDS)[-1], expected)


THREE, TWO = jnp.zeros(3, int), jnp.zeros((2, 3), int)  # three tokens, and two texts of three


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("kind", "arguments", "error", "message"),
    [
        ("sinusoidal-class", [jnp.zeros(10, int)], ValueError, "A text has 10 tokens"),
        ("learned", [jnp.zeros((2, 0), int)], ValueError, "A text has 0 tokens"),
        ("learned", [jnp.array([[0, -1]])], ValueError, r"ids\[0, 1\] is -1"),
        ("learned", [jnp.zeros(3)], TypeError, "inputs holds float32"),
        ("rows-learned-class", [jnp.zeros((3, 4))], ValueError, "d_in=5"),
        ("rows-learned-class", [jnp.zeros((0, 5))], ValueError, "A text has 0 tokens"),
        ("learned", [TWO, jnp.array([[True, True, False], [False] * 3])], ValueError, r"is_token\[1\]"),
        ("learned", [THREE, jnp.ones((1, 3), bool)], ValueError, "is_token has shape"),
        ("learned", [THREE, jnp.ones(3)], TypeError, "is_token holds float32"),
        ("bert", [THREE], ValueError, "segments are missing"),
        ("learned", [THREE, None, THREE], ValueError, "segments are given"),
        ("bert", [THREE, None, THREE[:2]], ValueError, "segments has shape"),
        ("bert", [THREE, None, THREE.at[2].set(2)], ValueError, r"ids\[2\] is 2"),
    ],
)
def test_bad_input_is_named(kind, arguments, error, message):
    with pytest.raises(error, match=message):
        new_model(kind)(*arguments)


@pytest.mark.run_time_check
def test_compiled_encoder_names_a_text_that_is_all_padding():
    model, is_token = new_model("sinusoidal-class"), jnp.array([[True, False, False], [True, True, False]])
    assert np.isfinite(call(model, TWO, is_token)).all()
    with pytest.raises(RuntimeError, match="is_token"):
        jax.block_until_ready(call(model, TWO, is_token.at[1].set(False)))


@pytest.mark.run_time_check
def test_compiled_encoder_names_ids_and_segments_out_of_range():
    model, tokens, segments = new_model("bert"), jnp.array([3, 10, 0]), jnp.array([0, 1, 1])
    assert call(model, tokens, None, segments).shape == (3, D_MODEL)
    for arguments, last in [((tokens + 1, None, segments), 10), ((tokens, None, segments + 1), 1)]:
        with pytest.raises(RuntimeError, match=f"ids is not allowed; expected 0 to {last}"):
            jax.block_until_ready(call(model, *arguments))


@pytest.mark.parametrize("fields", [{"vocab_size": None}, {"vocab_size": VOCAB, "d_in": 4}])
def test_encoder_config_wants_a_vocabulary_or_rows(fields):
    with pytest.raises(ValueError, match="expected one of them"):
        encoder_config(context_len=CONTEXT, **fields)
