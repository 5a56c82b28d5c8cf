"""Chapter 09, the encoder: what it computes, that all tokens see each other and nobody padding, and what it adds."""

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
    "relative-post-class": {
        **TOKENS,
        "position_scheme": "relative",
        "norm_placement": "post",
        "use_class_token": True,
    },
    "alibi-segments-class": {
        **TOKENS,
        "position_scheme": "alibi",
        "num_segments": SEGMENTS,
        "use_class_token": True,
    },
    "none": {**TOKENS, "position_scheme": "none", "activation": "relu"},
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
def test_encoder_agrees_with_a_loop_in_float64(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model, 1)
    rows = model(inputs, None, segments)
    assert rows.shape == (SEQ + model.config.use_class_token, D_MODEL)
    assert_close(rows, reference.encoder(inputs, model, segments))


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
@pytest.mark.parametrize("kind", ["bert", "alibi-segments-class", "rows-learned-class"])
def test_encoder_takes_padded_texts_and_segments_in_a_batch_of_any_rank(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model)

    def pile(array):
        return None if array is None else jnp.stack([array, array[::-1]])

    found = call(model, pile(inputs), pile(IS_TOKEN), pile(segments))
    expected = model(inputs, IS_TOKEN, segments)
    kept = np.pad(PADDED, ((0, 0), (model.config.use_class_token, 0)), constant_values=True)
    for each, of_texts in zip(found, (expected, expected[::-1]), strict=True):
        order = kept if of_texts is expected else kept[::-1]
        assert_close(np.asarray(each)[order], np.asarray(of_texts)[order])


@pytest.mark.parametrize("kind", ["learned", "bert", "rows-learned-class", "rotary-modern-embedding-norm"])
def test_encoder_without_is_token_takes_all_for_tokens(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model)
    assert_close(model(inputs, None, segments), model(inputs, jnp.ones((TEXTS, SEQ), bool), segments))


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize(
    "kind", ["learned", "bert", "relative-post-class", "alibi-segments-class", "rows-learned-class"]
)
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


class Given(eqx.Module):
    """An embedding that gives the same rows whatever the tokens are, so that one can differentiate by them."""

    rows: jax.Array

    def __call__(self, ids):
        return self.rows


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize("kind", ["learned", "rotary-modern-embedding-norm", "relative-post-class", "none"])
def test_encoder_lets_every_token_depend_on_every_other_one_and_on_no_padding(kind):
    model = new_model(kind)
    inputs, _ = inputs_of(model, 1)
    probe, length = jnp.asarray(NUMBERS.normal(size=D_MODEL), float), LENGTHS[1]

    def mixed(rows):
        given = eqx.tree_at(lambda m: m.embedding, model, Given(rows))
        return given(inputs, IS_TOKEN[1])[model.config.use_class_token :] @ probe

    reach = np.abs(jax.jit(jax.jacrev(mixed))(model.embedding(inputs))).sum(axis=2)
    assert reach.shape == (SEQ, SEQ)
    assert (reach[:length, :length] > 0).all()  # backwards and forwards
    assert (reach[:length, length:] == 0.0).all()


def test_encoder_keeps_texts_apart():
    model = new_model()
    inputs, _ = inputs_of(model)
    before, after = (np.asarray(model(each)) for each in (inputs, inputs.at[1].add(1) % VOCAB))
    np.testing.assert_array_equal(after[::2], before[::2])
    assert (np.abs(after[1] - before[1]).max(axis=1) > 1e-3).all()


ORDER = np.array([3, 0, 6, 1, 5, 2, 4])


@pytest.mark.equation("eq-encoder-model")
def test_encoder_without_positions_follows_a_permutation():
    model, with_class = new_model("none"), new_model("none", use_class_token=True)
    inputs, permuted = jnp.asarray(IDS[0]), jnp.asarray(IDS[0][ORDER])
    assert_close(model(permuted), np.asarray(model(inputs))[ORDER])
    rows, others = np.asarray(with_class(inputs)), np.asarray(with_class(permuted))
    assert_close(others[0], rows[0])
    assert_close(others[1:], rows[1:][ORDER])


@pytest.mark.parametrize("position_scheme", ["learned", "sinusoidal", "rotary", "relative", "alibi"])
def test_encoder_with_positions_does_not_follow_a_permutation(position_scheme):
    model = new_model(position_scheme=position_scheme)
    rows, permuted = (np.asarray(model(jnp.asarray(ids))) for ids in (IDS[0], IDS[0][ORDER]))
    assert np.abs(permuted - rows[ORDER]).max() > 1e-3 * np.abs(rows).max()


def test_encoder_relative_positions_tell_before_from_after():
    model = new_model(position_scheme="relative")
    bias = np.asarray(model.stack.scheme.bias(jnp.arange(SEQ), jnp.arange(SEQ)))
    assert (np.abs(bias[:, 2, 4] - bias[:, 4, 2]) > 1e-3).all()


def test_encoder_puts_the_class_token_in_front_of_every_text():
    model = new_model(use_class_token=True)
    rows, table = model.residual_stream(jnp.asarray(IDS))[0], np.asarray(model.stack.scheme.table)
    assert table.shape == (CONTEXT + 1, D_MODEL)
    weight = np.asarray(model.embedding.weight)
    for text, ids in zip(rows, IDS, strict=True):
        assert_close(text[0], model.class_token + table[0])
        assert_close(text[1:], weight[ids] + table[1 : SEQ + 1])


def test_encoder_adds_the_vector_of_each_tokens_segment():
    model = new_model(num_segments=SEGMENTS, use_class_token=True, position_scheme="none")
    segments = np.array([0, 0, 0, 1, 1, 0, 1])
    rows = model.residual_stream(jnp.asarray(IDS[0]), None, jnp.asarray(segments))[0]
    assert_close(rows[0], model.class_token)
    expected = np.asarray(model.embedding.weight)[IDS[0]] + np.asarray(model.segment_embedding.weight)[segments]
    assert_close(rows[1:], expected)


def test_encoder_multiplies_tokens_but_no_rows_of_numbers_before_it_adds_sinusoids():
    tokens, rows = (new_model(kind) for kind in ("sinusoidal-class", "rows-sinusoidal-post"))
    codes = np.asarray(pf.sinusoidal_positions(jnp.arange(SEQ + 1), D_MODEL))
    entering = tokens.residual_stream(jnp.asarray(IDS[0]))[0]
    assert_close(entering[1:], np.asarray(tokens.embedding.weight)[IDS[0]] * D_MODEL**0.5 + codes[1:])
    entering = rows.residual_stream(jnp.asarray(VECTORS[0]))[0]
    assert_close(entering, VECTORS[0] @ np.asarray(rows.embedding.weight) + codes[:SEQ])


def test_encoder_embedding_norm_normalises_what_enters_the_first_block():
    plain, normed = new_model(), new_model(embedding_norm=True)
    assert plain.embedding_norm is None
    normed = eqx.tree_at(
        lambda m: (m.embedding, m.stack.scheme, m.embedding_norm),
        normed,
        (plain.embedding, plain.stack.scheme, pf.LayerNorm(D_MODEL)),
    )
    one, other = (model.residual_stream(jnp.arange(SEQ))[0] for model in (plain, normed))
    assert_close(other, pf.standardise(one))


@pytest.mark.parametrize("kind", ["learned", "bert", "relative-post-class", "rows-learned-class"])
def test_encoder_weights_are_what_the_blocks_attend_with(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model, 2)
    weights = model.attention_weights(inputs, None, segments)
    np.testing.assert_allclose(weights, reference.inside_encoder(inputs, model, segments).weights, atol=1e-5)


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


@pytest.mark.parametrize("kind", ["bert", "rows-learned-class"])
def test_encoder_with_all_its_parts_is_saved_and_loaded(kind, tmp_path):
    model = new_model(kind)
    inputs, segments = inputs_of(model, 0)
    pf.save_model(tmp_path / "encoder.safetensors", model)
    again = pf.load_model(tmp_path / "encoder.safetensors", type(model))
    assert again.config == model.config
    np.testing.assert_array_equal(again(inputs, None, segments), model(inputs, None, segments))


# --- at its edges: texts that are empty, too long or all padding, and what a reader is told ------------------


def test_encoder_takes_a_text_as_long_as_the_context_and_a_class_token_besides():
    text = jnp.arange(CONTEXT)
    assert new_model()(text).shape == (CONTEXT, D_MODEL)
    assert new_model("sinusoidal-class")(text).shape == (CONTEXT + 1, D_MODEL)
    assert new_model("sinusoidal-class")(jnp.array([[7]])).shape == (1, 2, D_MODEL)


def test_encoder_reads_arrays_of_numpy():
    model = new_model("bert")
    expected = model(jnp.asarray(IDS), IS_TOKEN, jnp.asarray(SEGMENT_IDS))
    np.testing.assert_array_equal(model.residual_stream(IDS, PADDED, SEGMENT_IDS)[-1], expected)


THREE, TWO = jnp.zeros(3, int), jnp.zeros((2, 3), int)  # three tokens, and two texts of three


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: new_model()(jnp.zeros(10, int)),
            ValueError,
            r"A text has 10 tokens; expected 1 to context_len=9\. Cut",
        ),
        (lambda: new_model("sinusoidal-class")(jnp.zeros(10, int)), ValueError, r"A text has 10 tokens; .*=9"),
        (
            lambda: new_model()(jnp.zeros((2, 10), int)),
            ValueError,
            r"A text has 10 tokens; expected 1 to context_len=9",
        ),
        (lambda: new_model("none")(jnp.zeros(10, int)), ValueError, r"A text has 10 tokens; expected 1 to"),
        (lambda: new_model()(jnp.zeros(0, int)), ValueError, r"A text has 0 tokens; expected 1 to .*at least one"),
        (lambda: new_model()(jnp.zeros((2, 0), int)), ValueError, r"A text has 0 tokens; expected 1 to .*at least one"),
        (lambda: new_model()([1, 2]), TypeError, r"inputs is a list; expected an array .*jnp\.asarray\(inputs\)"),
        (lambda: new_model()(jnp.array([0, 11])), ValueError, r"ids\[1\] is 11; expected 0 to 10"),
        (lambda: new_model()(jnp.array([[0, -1]])), ValueError, r"ids\[0, 1\] is -1; expected 0 to 10"),
        (lambda: new_model()(jnp.zeros(3)), TypeError, r"inputs holds float32; expected whole numbers"),
        (
            lambda: new_model("rows-learned-class")(jnp.zeros((3, 4))),
            ValueError,
            r"inputs has shape \(3, 4\); expected \(\.\.\., seq, d_in=5\)",
        ),
        (
            lambda: new_model("rows-learned-class")(jnp.zeros((5, 3))),
            ValueError,
            r"\(\.\.\., seq, d_in=5\).*inputs\.mT",
        ),
        (lambda: new_model("rows-learned-class")(jnp.zeros((0, 5))), ValueError, r"A text has 0 tokens"),
        (
            lambda: new_model("rows-learned-class")(jnp.zeros((3, 5), int)),
            TypeError,
            r"inputs holds int.*expected floats",
        ),
        (
            lambda: new_model()(TWO, jnp.array([[True, True, False], [False] * 3])),
            ValueError,
            r"is_token\[1\] is not allowed; expected a token in each text: leave out what is all padding",
        ),
        (
            lambda: new_model()(THREE, jnp.zeros(3, bool)),
            ValueError,
            r"is_token is not allowed; expected a token in each",
        ),
        (
            lambda: new_model("sinusoidal-class")(THREE, jnp.zeros(3, bool)),
            ValueError,
            r"expected a token in each text",
        ),
        (
            lambda: new_model().attention_weights(THREE, jnp.zeros(3, bool)),
            ValueError,
            r"expected a token in each text",
        ),
        (
            lambda: new_model()(TWO, jnp.ones((3, 2), bool)),
            ValueError,
            r"is_token has shape \(3, 2\); expected \(2, seq=3\)\. .*One for each token",
        ),
        (
            lambda: new_model()(THREE, jnp.ones((1, 3), bool)),
            ValueError,
            r"is_token has shape \(1, 3\); exp.*\(seq=3,\)",
        ),
        (
            lambda: new_model()(THREE, jnp.ones(3)),
            TypeError,
            r"is_token holds float32; expected bool, True for a token",
        ),
        (lambda: new_model()(THREE, [True] * 3), TypeError, r"is_token is a list; expected an array"),
        (
            lambda: new_model("bert")(THREE),
            ValueError,
            r"segments are missing; expected one of 2 numbers for each token, as num_segments is 2",
        ),
        (
            lambda: new_model()(THREE, None, THREE),
            ValueError,
            r"segments are given; expected none, as num_segments is 0",
        ),
        (
            lambda: new_model("bert")(THREE, None, THREE[:2]),
            ValueError,
            r"segments has shape \(2,\); expected \(seq=3,\)",
        ),
        (lambda: new_model("bert")(THREE, None, THREE.at[2].set(2)), ValueError, r"ids\[2\] is 2; expected 0 to 1"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("kind", ["learned", "sinusoidal-class"])
def test_compiled_encoder_names_a_text_that_is_all_padding(kind):
    model, is_token = new_model(kind), jnp.array([[True, False, False], [True, True, False]])
    assert np.isfinite(call(model, TWO, is_token)).all()
    with pytest.raises(
        RuntimeError, match=r"An entry of is_token is not allowed; expected a token in each text: leave"
    ):
        jax.block_until_ready(call(model, TWO, is_token.at[1].set(False)))


def test_compiled_encoder_names_ids_and_segments_out_of_range():
    model, tokens, segments = new_model("bert"), jnp.array([3, 10, 0]), jnp.array([0, 1, 1])
    assert call(model, tokens, None, segments).shape == (3, D_MODEL)
    for arguments, last in [((tokens + 1, None, segments), 10), ((tokens, None, segments + 1), 1)]:
        with pytest.raises(RuntimeError, match=rf"An entry of ids is not allowed; expected 0 to {last}, as there are"):
            jax.block_until_ready(call(model, *arguments))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"vocab_size": None}, ValueError, r"vocab_size is None and d_in is None; expected one of them"),
        ({"d_in": 4}, ValueError, r"vocab_size is 11 and d_in is 4; expected one of them: vocab_size for texts"),
        ({"vocab_size": 0}, ValueError, r"vocab_size is 0; expected at least 1"),
        ({"vocab_size": None, "d_in": 0}, ValueError, r"d_in is 0; expected at least 1"),
        ({"context_len": 0}, ValueError, r"context_len is 0; expected at least 1"),
        ({"num_segments": -1}, ValueError, r"num_segments is -1; expected at least 0 and below"),
        ({"num_segments": 1.5}, TypeError, r"num_segments is 1\.5; expected a whole number"),
        ({"use_class_token": 1}, TypeError, r"use_class_token is 1; expected True or False"),
        ({"embedding_norm": "yes"}, TypeError, r"embedding_norm is 'yes'; expected True or False"),
    ],
)
def test_encoder_config_names_what_is_wrong_before_a_model_is_made(fields, error, message):
    with pytest.raises(error, match=message):
        encoder_config(**{"vocab_size": VOCAB, "context_len": CONTEXT} | fields)


def test_encoder_config_is_one_value():
    config = encoder_config(vocab_size=VOCAB, context_len=CONTEXT)
    assert config == encoder_config(vocab_size=VOCAB, context_len=CONTEXT)
    assert hash(config) == hash(encoder_config(vocab_size=VOCAB, context_len=CONTEXT))
    assert config != encoder_config(vocab_size=VOCAB, context_len=CONTEXT, norm="rms")
    with pytest.raises(AttributeError):
        config.vocab_size = 3
