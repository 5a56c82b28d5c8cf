"""Chapter 07, the encoder: what it computes, that all tokens see each other and nobody padding, and what it adds."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from redraw import redrawn

import plainformer as pf

VOCAB, CONTEXT, SEQ, D_MODEL, HEADS, D_FF, D_IN, TEXTS, SEGMENTS = 11, 9, 7, 24, 6, 10, 5, 3, 2
LENGTHS = [7, 4, 2]
MODERN = {"norm": "rms", "activation": "swiglu", "use_bias": False}
TOKENS, ROWS = {"vocab_size": VOCAB}, {"d_in": D_IN}
KINDS = {
    "learned": {**TOKENS},
    "bert": {**TOKENS, "placement": "post", "embedding_norm": True, "num_segments": SEGMENTS},
    "sinusoidal-class": {**TOKENS, "positions": "sinusoidal", "class_token": True},
    "rotary-modern-embedding-norm": {**TOKENS, "positions": "rotary", "embedding_norm": True, **MODERN},
    "relative-post-class": {**TOKENS, "positions": "relative", "placement": "post", "class_token": True},
    "alibi-segments-class": {**TOKENS, "positions": "alibi", "num_segments": SEGMENTS, "class_token": True},
    "none": {**TOKENS, "positions": "none", "activation": "relu"},
    "rows-learned-class": {**ROWS, "class_token": True, "activation": "gelu_tanh"},
    "rows-sinusoidal-post": {**ROWS, "positions": "sinusoidal", "placement": "post", "use_bias": False},
}
call = eqx.filter_jit(lambda model, *arguments, key=None: model(*arguments, key=key))


def new_model(key, kind="learned", **options):
    """An encoder whose parameters are all drawn: biases of zero would hide a slip, small positions an offset."""
    sizes = {"context_len": CONTEXT, "d_model": D_MODEL, "num_layers": 2, "num_heads": HEADS, "d_ff": D_FF}
    return redrawn(pf.Encoder(pf.EncoderConfig(**sizes | KINDS[kind] | options), key=key), key)


def new_inputs(key, model):
    """Three texts of seven tokens, or of seven rows of numbers, and their segments if the model has any."""
    inputs = jax.random.randint(key, (TEXTS, SEQ), 0, VOCAB)
    if model.config.d_in is not None:
        inputs = jax.random.normal(key, (TEXTS, SEQ, D_IN))
    segments = jax.random.bernoulli(key, 0.5, (TEXTS, SEQ)).astype(int)
    return inputs, segments if model.config.num_segments else None


def one(arrays, text, length=SEQ):
    """The first tokens of one of the texts, and their segments."""
    return [None if array is None else array[text, :length] for array in arrays]


@pytest.fixture
def is_token():
    """Which tokens of three texts of unequal length are none."""
    return jnp.arange(SEQ)[None, :] < jnp.array(LENGTHS)[:, None]


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize("kind", KINDS)
def test_encoder_agrees_with_a_loop_in_float64(kind, key):
    model = new_model(key, kind)
    inputs, segments = one(new_inputs(key, model), 1)
    rows = call(model, inputs, None, segments)
    assert rows.shape == (SEQ + model.config.class_token, D_MODEL)
    assert_close(rows, reference.encoder(inputs, model, segments))


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize("kind", KINDS)
def test_encoder_of_padded_texts_is_each_text_alone(kind, is_token, key):
    model = new_model(key, kind)
    inputs, segments = new_inputs(key, model)
    together = call(model, inputs, is_token, segments)
    assert together.shape == (TEXTS, SEQ + model.config.class_token, D_MODEL)
    assert np.isfinite(together).all()
    for text, length in enumerate(LENGTHS):
        alone, its_segments = one((inputs, segments), text, length)
        end = length + model.config.class_token
        assert_close(together[text, :end], reference.encoder(alone, model, its_segments))


@pytest.mark.parametrize("kind", ["learned", "bert", "rows-learned-class", "rotary-modern-embedding-norm"])
def test_encoder_without_is_token_takes_all_for_tokens(kind, key):
    model = new_model(key, kind)
    inputs, segments = new_inputs(key, model)
    all_tokens = jnp.ones((TEXTS, SEQ), bool)
    assert_close(call(model, inputs, None, segments), call(model, inputs, all_tokens, segments))


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize(
    "kind", ["learned", "bert", "relative-post-class", "alibi-segments-class", "rows-learned-class"]
)
def test_encoder_is_not_reached_by_what_stands_in_padding(kind, is_token, key):
    model = new_model(key, kind)
    inputs, segments = new_inputs(key, model)
    other = (inputs + 1) % VOCAB if model.config.d_in is None else jnp.nan * inputs
    padded = is_token if model.config.d_in is None else is_token[..., None]
    changed = jnp.where(padded, inputs, other)
    kept = np.pad(is_token, ((0, 0), (model.config.class_token, 0)), constant_values=True)
    found, expected = call(model, changed, is_token, segments), call(model, inputs, is_token, segments)
    np.testing.assert_array_equal(found[kept], expected[kept])
    if model.config.d_in is None:
        assert (np.abs(found[~kept] - expected[~kept]).max(axis=1) > 1e-3).all()
    else:  # gradients would hold NaN if a slope of 0 met the NaN of padding
        slopes = eqx.filter_jit(eqx.filter_grad(lambda model: (model(changed, is_token)[kept]).sum()))(model)
        assert all(jnp.isfinite(slope).all() for slope in jax.tree.leaves(slopes))


class Given(eqx.Module):
    """An embedding that gives the same rows whatever the tokens are, so that one can differentiate by them."""

    rows: jax.Array

    def __call__(self, ids):
        return self.rows


@pytest.mark.equation("eq-encoder-model")
@pytest.mark.parametrize("kind", ["learned", "rotary-modern-embedding-norm", "relative-post-class", "none"])
def test_encoder_lets_every_token_depend_on_every_other_one_and_on_no_padding(kind, is_token, key):
    model = new_model(key, kind)
    inputs, _ = new_inputs(key, model)
    probe, length = jax.random.normal(key, (D_MODEL,)), LENGTHS[1]

    @jax.jit
    def mixed(rows):
        given = eqx.tree_at(lambda m: m.embedding, model, Given(rows))
        return given(inputs[1], is_token[1])[model.config.class_token :] @ probe

    reach = np.abs(jax.jacrev(mixed)(model.embedding(inputs[1]))).sum(axis=2)
    assert reach.shape == (SEQ, SEQ)
    assert (reach[:length, :length] > 0).all()  # backwards and forwards
    assert (reach[:length, length:] == 0.0).all()


def test_encoder_keeps_texts_apart(key):
    model = new_model(key)
    inputs, _ = new_inputs(key, model)
    before, after = call(model, inputs), call(model, inputs.at[1].add(1) % VOCAB)
    np.testing.assert_array_equal(after[::2], before[::2])
    assert (np.abs(after[1] - before[1]).max(axis=1) > 1e-3).all()


@pytest.mark.equation("eq-encoder-model")
def test_encoder_without_positions_follows_a_permutation(key):
    model, order = new_model(key, "none"), np.array([3, 0, 6, 1, 5, 2, 4])
    inputs, _ = one(new_inputs(key, model), 0)
    assert_close(call(model, inputs[order]), call(model, inputs)[order])
    with_class = new_model(key, "none", class_token=True)
    rows, permuted = call(with_class, inputs), call(with_class, inputs[order])
    assert_close(permuted[0], rows[0])
    assert_close(permuted[1:], rows[1:][order])


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "relative", "alibi"])
def test_encoder_with_positions_does_not_follow_a_permutation(positions, key):
    model, order = new_model(key, positions=positions), np.array([3, 0, 6, 1, 5, 2, 4])
    inputs, _ = one(new_inputs(key, model), 0)
    rows = call(model, inputs)
    assert np.abs(call(model, inputs[order]) - rows[order]).max() > 1e-3 * np.abs(rows).max()


def test_encoder_relative_positions_tell_before_from_after(key):
    model = new_model(key, positions="relative")
    bias = model.positions.bias(jnp.arange(SEQ), jnp.arange(SEQ))
    assert (np.abs(bias[:, 2, 4] - bias[:, 4, 2]) > 1e-3).all()


def entering(model):
    """The model without blocks and final norm: what would enter the first block."""
    return eqx.tree_at(lambda m: (m.blocks, m.final_norm), model, ((), None), is_leaf=lambda leaf: leaf is None)


def test_encoder_puts_the_class_token_in_front_of_every_text(key):
    model = entering(new_model(key, class_token=True))
    inputs, _ = new_inputs(key, model)
    rows, table = model(inputs), model.positions.table
    assert table.shape == (CONTEXT + 1, D_MODEL)
    for text in range(TEXTS):
        assert_close(rows[text, 0], model.class_vector + table[0])
        for place, token in enumerate(inputs[text]):
            assert_close(rows[text, place + 1], model.embedding.weight[token] + table[place + 1])


def test_encoder_adds_the_vector_of_each_tokens_segment(key):
    model = entering(new_model(key, num_segments=SEGMENTS, class_token=True, positions="none"))
    inputs, _ = one(new_inputs(key, model), 0)
    segments = jnp.array([0, 0, 0, 1, 1, 0, 1])
    rows = model(inputs, None, segments)
    assert_close(rows[0], model.class_vector)
    assert_close(rows[1:], model.embedding.weight[inputs] + model.segment_embedding.weight[segments])


def test_encoder_multiplies_tokens_but_no_rows_of_numbers_before_it_adds_sinusoids(key):
    tokens, rows = (entering(new_model(key, kind)) for kind in ("sinusoidal-class", "rows-sinusoidal-post"))
    inputs, _ = one(new_inputs(key, tokens), 0)
    codes = pf.sinusoidal_positions(jnp.arange(SEQ + 1), D_MODEL)
    assert_close(tokens(inputs)[1:], tokens.embedding.weight[inputs] * D_MODEL**0.5 + codes[1:])
    inputs, _ = one(new_inputs(key, rows), 0)
    assert_close(rows(inputs), inputs @ rows.embedding.weight + codes[:SEQ])


def test_encoder_embedding_norm_normalises_what_enters_the_first_block(key):
    config = pf.EncoderConfig(context_len=CONTEXT, vocab_size=VOCAB, d_model=D_MODEL, num_heads=HEADS)
    inputs = jnp.arange(SEQ)
    plain = entering(pf.Encoder(config, key=key))
    assert plain.embedding_norm is None
    normed = entering(pf.Encoder(pf.EncoderConfig(**config.__dict__ | {"embedding_norm": True}), key=key))
    assert_close(normed(inputs), pf.standardise(plain(inputs)))


@pytest.mark.parametrize("kind", ["learned", "bert", "relative-post-class", "rows-learned-class"])
def test_encoder_weights_are_what_the_blocks_attend_with(kind, key):
    model = new_model(key, kind)
    inputs, segments = one(new_inputs(key, model), 2)
    weights = model.weights(inputs, None, segments)
    rows, scheme = reference.encoder_rows(inputs, model, segments), model.positions
    seq, width = len(rows[0]), D_MODEL // HEADS
    assert weights.shape == (2, HEADS, seq, seq)
    bias = scheme.bias(jnp.arange(seq), jnp.arange(seq))
    bias = np.zeros((HEADS, seq, seq)) if bias is None else np.asarray(bias, np.float64)
    for layer, head in itertools.product(range(2), range(HEADS)):
        block, cut = model.blocks[layer], slice(head * width, (head + 1) * width)
        normed = reference.normalise(rows[layer], block.attention_norm)
        x = normed if model.config.placement == "pre" else rows[layer]
        attention = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), block.attention)
        queries = x @ attention.query_weight[:, cut] + attention.query_bias[cut]
        keys = x @ attention.key_weight[:, cut] + attention.key_bias[cut]
        powers = np.exp(queries @ keys.T / width**0.5 + bias[head])
        np.testing.assert_allclose(weights[layer, head], powers / powers.sum(axis=1, keepdims=True), atol=1e-5)


def test_encoder_weights_give_padding_nothing(is_token, key):
    model = new_model(key, "alibi-segments-class")
    inputs, segments = one(new_inputs(key, model), 1)
    weights = np.asarray(model.weights(inputs, is_token[1], segments))
    np.testing.assert_allclose(weights.sum(axis=3), 1, atol=1e-5)
    end = LENGTHS[1] + 1
    assert (weights[..., end:] == 0.0).all()
    assert (weights[..., :end] > 0).all()
    alone, its_segments = one((inputs[None], segments[None]), 0, LENGTHS[1])
    np.testing.assert_allclose(weights[:, :, :end, :end], model.weights(alone, None, its_segments), atol=1e-5)


def test_encoder_drops_only_with_a_key(is_token, key):
    model, sober = (new_model(key, dropout_rate=rate) for rate in (0.5, 0.0))
    inputs, _ = new_inputs(key, model)
    first, other = jax.random.split(key)
    np.testing.assert_array_equal(call(model, inputs, is_token), call(sober, inputs, is_token))
    np.testing.assert_array_equal(call(sober, inputs, is_token, key=first), call(sober, inputs, is_token))
    dropped = call(model, inputs, is_token, key=first)
    np.testing.assert_array_equal(dropped, call(model, inputs, is_token, key=first))
    assert np.abs(dropped - call(model, inputs, is_token)).max() > 0.1
    assert np.abs(dropped - call(model, inputs, is_token, key=other)).max() > 0.1
    assert np.abs(entering(model)(inputs, key=first) - entering(model)(inputs)).max() > 0.1


def test_encoder_has_as_many_parameters_as_counted_by_hand():
    def count(kind, **options):
        sizes = {"context_len": CONTEXT, "d_model": D_MODEL, "num_layers": 5, "num_heads": HEADS, "d_ff": D_FF}
        config = pf.EncoderConfig(**sizes | KINDS[kind] | options)
        return pf.count_parameters(eqx.filter_eval_shape(lambda key: pf.Encoder(config, key=key), jax.random.key(0)))

    block = 4 * (24 * 24 + 24) + (24 * 10 + 10) + (10 * 24 + 24) + 2 * 48
    assert count("learned") == 11 * 24 + 9 * 24 + 5 * block + 48
    assert count("bert") == 11 * 24 + 2 * 24 + 9 * 24 + 48 + 5 * block
    assert count("rows-learned-class") == 5 * 24 + 24 + 24 + 10 * 24 + 5 * block + 48
    assert count("sinusoidal-class") == 11 * 24 + 24 + 5 * block + 48
    modern = 4 * 24 * 24 + 3 * 24 * 10 + 2 * 24
    assert count("rotary-modern-embedding-norm") == 11 * 24 + 24 + 5 * modern + 24


def test_encoder_layers_start_different(key):
    config = pf.EncoderConfig(context_len=CONTEXT, vocab_size=VOCAB, d_model=D_MODEL, num_heads=HEADS, num_layers=3)
    matrices = [leaf for leaf in jax.tree.leaves(pf.Encoder(config, key=key).blocks) if leaf.ndim == 2]
    for matrix, other in itertools.combinations(matrices, 2):
        assert matrix.shape != other.shape or np.abs(matrix - other).max() > 0.01


def test_encoder_in_16_bits_stays_in_16_bits(is_token, key):
    model = new_model(key, "sinusoidal-class")
    inputs, _ = new_inputs(key, model)
    halved = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), model)
    found, expected = call(halved, inputs, is_token), call(model, inputs, is_token)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), expected, atol=0.1 * float(jnp.abs(expected).max()))


def test_encoder_is_saved_and_loaded(tmp_path, key):
    model = new_model(key, "bert")
    inputs, segments = one(new_inputs(key, model), 0)
    pf.save_model(tmp_path / "encoder.safetensors", model)
    again = pf.load_model(tmp_path / "encoder.safetensors", pf.Encoder)
    np.testing.assert_array_equal(call(again, inputs, None, segments), call(model, inputs, None, segments))
