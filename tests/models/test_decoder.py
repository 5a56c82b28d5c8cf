"""Chapter 06, the decoder: what it computes, that it sees no future, and that reading with a cache changes nothing."""

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

VOCAB, CONTEXT, SEQ, D_MODEL, HEADS, KV_HEADS, D_FF, TEXTS = 11, 9, 7, 24, 6, 2, 10, 3
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
GROUPED = {"num_kv_heads": KV_HEADS}
MODERN = {"norm": "rms", "activation": "swiglu", "use_bias": False, "tied_embedding": False}
KINDS = {
    "learned": {"positions": "learned"},
    "learned-grouped-post": {"positions": "learned", "placement": "post", "tied_embedding": False, **GROUPED},
    "sinusoidal": {"positions": "sinusoidal", "tied_embedding": False},
    "sinusoidal-grouped-post": {"positions": "sinusoidal", "placement": "post", **GROUPED},
    "rotary-post": {"positions": "rotary", "placement": "post"},
    "rotary-grouped-modern": {"positions": "rotary", **GROUPED, **MODERN},
    "relative-grouped": {"positions": "relative", **GROUPED},
    "alibi-post-modern": {"positions": "alibi", "placement": "post", **MODERN},
    "none": {"positions": "none", "activation": "relu"},
}
call = eqx.filter_jit(lambda model, tokens, key=None: model(tokens, key=key))


@eqx.filter_jit
def read(model, tokens, cache, positions=None):
    """Logits of further tokens, and the longer cache."""
    rows, cache = model.extend(tokens, cache, positions)
    return model.logits(rows.reshape(-1, D_MODEL)).reshape(*tokens.shape, -1), cache


def new_model(key, kind="learned", **options):
    """A decoder whose parameters are all drawn: biases of zero would hide a slip, small positions an offset."""
    config = pf.DecoderConfig(VOCAB, CONTEXT, D_MODEL, 2, HEADS, D_FF, **KINDS[kind] | options)
    return redrawn(pf.Decoder(config, key=key), key)


@pytest.fixture
def text(key):
    """Seven tokens."""
    return jax.random.randint(key, (SEQ,), 0, VOCAB)


@pytest.fixture
def texts(key):
    """Three texts of seven tokens."""
    return jax.random.randint(key, (TEXTS, SEQ), 0, VOCAB)


@pytest.mark.equation("eq-decoder-model")
@pytest.mark.parametrize("kind", ["learned-grouped-post", "sinusoidal", "rotary-grouped-modern", "none"])
def test_decoder_agrees_with_a_loop_in_float64(kind, text, key):
    model = new_model(key, kind)
    logits = call(model, text)
    assert logits.shape == (SEQ, VOCAB)
    assert_close(logits, reference.decoder(text, model))


@pytest.mark.equation("eq-decoder-model", "eq-decoder-cached-attention")
@pytest.mark.parametrize("kind", KINDS)
def test_decoder_extend_equals_the_full_call(kind, texts, key):
    model, cache, pieces = new_model(key, kind), None, []
    expected = call(model, texts)
    assert expected.shape == (TEXTS, SEQ, VOCAB)
    cache = model.new_cache(num_texts=TEXTS)
    for start, end in [(0, 4), (4, 5), (5, 6), (6, 7)]:
        logits, cache = read(model, texts[:, start:end], cache)
        pieces.append(logits)
    assert_close(jnp.concatenate(pieces, axis=1), expected)
    assert int(cache[1].length) == SEQ


@pytest.mark.equation("eq-decoder-cache")
def test_decoder_extend_equals_the_full_call_for_every_split_of_a_prompt(text, key):
    model = new_model(key, "rotary-grouped-modern")
    prompt = text[:5]
    expected = call(model, text)[:5]
    for cuts in itertools.product([False, True], repeat=4):
        ends = [place + 1 for place, cut in enumerate(cuts) if cut] + [5]
        cache, pieces, start = model.new_cache(), [], 0
        for end in ends:
            logits, cache = read(model, prompt[start:end], cache)
            pieces, start = [*pieces, logits], end
        assert_close(jnp.concatenate(pieces), expected)


@pytest.mark.parametrize("kind", ["learned", "rotary-grouped-modern", "relative-grouped"])
def test_decoder_extend_ignores_padding_in_front(kind, texts, key):
    model, padded = new_model(key, kind), [0, 2, 5]
    positions = np.array([[-1] * start + list(range(SEQ - start)) for start in padded])
    tokens = jnp.where(positions < 0, 0, texts)
    cache = model.new_cache(num_texts=TEXTS)
    first, cache = read(model, tokens[:, :6], cache, jnp.asarray(positions[:, :6]))
    last, cache = read(model, tokens[:, 6:], cache, jnp.asarray(positions[:, 6:]))
    logits = jnp.concatenate([first, last], axis=1)
    assert np.isfinite(logits).all()
    for row, start in enumerate(padded):
        alone = jnp.zeros(SEQ, int).at[: SEQ - start].set(texts[row, start:])  # what follows does not matter
        assert_close(logits[row, start:], call(model, alone)[: SEQ - start])


@pytest.mark.parametrize("kind", ["learned", "relative-grouped"])
def test_decoder_extend_counts_on_from_each_texts_last_position(kind, texts, key):
    model, start = new_model(key, kind), jnp.array([[0], [2], [1]])
    positions = jnp.maximum(jnp.arange(4)[None, :] - start, -1)
    _, cache = read(model, texts[:, :4], model.new_cache(num_texts=TEXTS), positions)
    found, longer = read(model, texts[:, 4:6], cache)
    expected, _ = read(model, texts[:, 4:6], cache, 4 - start + jnp.arange(2)[None, :])
    np.testing.assert_array_equal(found, expected)
    assert longer[0].positions[:, 5].tolist() == [5, 3, 4]


@pytest.mark.parametrize(
    "kind", ["learned", "sinusoidal", "rotary-grouped-modern", "relative-grouped", "alibi-post-modern"]
)
def test_decoder_extend_in_16_bits_gives_what_a_call_gives(kind, text, key):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), new_model(key, kind))
    cache = model.new_cache()
    assert cache[1].keys.dtype == cache[1].values.dtype == jnp.bfloat16
    rows, cache = model.extend(text[:4], cache)
    more, _ = model.extend(text[4:], cache)
    expected = model(text)
    found = model.logits(jnp.concatenate([rows, more]))
    assert rows.dtype == more.dtype == expected.dtype == jnp.bfloat16
    scale = float(jnp.abs(expected).max())
    np.testing.assert_allclose(found.astype(jnp.float32), expected.astype(jnp.float32), atol=0.03 * scale)


@pytest.mark.parametrize("kind", ["learned", "rotary-post", "alibi-post-modern"])
def test_decoder_extend_one_position_further_differs(kind, texts, key):
    model = new_model(key, kind)
    _, cache = read(model, texts[:, :4], model.new_cache(num_texts=TEXTS))
    right, wrong = (read(model, texts[:, 4:5], cache, jnp.full((TEXTS, 1), position))[0][:, 0] for position in (4, 5))
    expected = call(model, texts)[:, 4]
    assert_close(right, expected)
    assert (np.abs(wrong - expected).max(axis=1) > 1e-3 * np.abs(expected).max()).all()


@pytest.mark.equation("eq-decoder-model")
@pytest.mark.parametrize("kind", ["rotary-grouped-modern"])
def test_decoder_of_several_texts_is_each_text_alone(kind, texts, key):
    model = new_model(key, kind)
    for together, text in zip(call(model, texts), texts, strict=True):
        assert_close(together, call(model, text))


class Given(eqx.Module):
    """An embedding that gives the same rows whatever the tokens are, so that one can differentiate by them."""

    rows: jax.Array

    def __call__(self, ids):
        return self.rows


@pytest.mark.equation("eq-decoder-model")
@pytest.mark.parametrize("kind", ["sinusoidal", "rotary-grouped-modern"])
def test_decoder_lets_no_gradient_back_from_the_future(kind, text, key):
    model = new_model(key, kind)
    probe = jax.random.normal(key, (VOCAB,))

    @jax.jit
    def mixed(rows):
        return eqx.tree_at(lambda m: m.embedding, model, Given(rows))(text) @ probe

    jacobian = jax.jacrev(mixed)(model.embedding(text))
    reach = np.abs(jacobian).sum(axis=2)
    assert (reach[np.triu_indices(SEQ, 1)] == 0.0).all()
    assert (reach[np.tril_indices(SEQ)] > 0).all()


@pytest.mark.parametrize("kind", ["learned", "rotary-grouped-modern"])
def test_decoder_logits_of_a_prefix_do_not_depend_on_what_follows(kind, text, key):
    model = new_model(key, kind)
    logits = call(model, text)
    for end in range(1, SEQ):
        changed = call(model, text.at[end:].add(1) % VOCAB)
        np.testing.assert_array_equal(changed[:end], logits[:end])
        assert (np.abs(changed[end:] - logits[end:]).max(axis=1) > 1e-3).all()


def test_decoder_drops_only_with_a_key(text, key):
    model, sober = (new_model(key, dropout_rate=rate) for rate in (0.5, 0.0))
    one, other = jax.random.split(key)
    np.testing.assert_array_equal(call(model, text), call(sober, text))
    np.testing.assert_array_equal(call(sober, text, one), call(sober, text))
    np.testing.assert_array_equal(call(model, text, one), call(model, text, one))
    assert np.abs(call(model, text, one) - call(model, text)).max() > 0.1
    assert np.abs(call(model, text, one) - call(model, text, other)).max() > 0.1
    assert [block.dropout_rate for block in model.blocks] == [0.5, 0.5]


def test_decoder_drops_entries_of_the_embedding(text, key):
    model = eqx.tree_at(lambda m: m.blocks, new_model(key, dropout_rate=0.5), ())
    assert np.abs(model(text, key=key) - model(text)).max() > 0.1


class Noting(eqx.Module):
    """A block that changes nothing, and notes the key it is called with."""

    keys: list = eqx.field(static=True)

    def __call__(self, x, *_, key, **__):
        self.keys.append(key)
        return x


def test_decoder_gives_the_embedding_and_each_block_a_dropout_key_of_its_own(text, key, monkeypatch):
    keys = []

    def noting(x, rate, *, key):
        keys.append(key)
        return x

    monkeypatch.setattr("plainformer.models.decoder.dropout", noting)
    model = eqx.tree_at(
        lambda m: m.blocks, new_model(key, dropout_rate=0.5), (Noting(keys), Noting(keys), Noting(keys))
    )
    model(text, key=key)
    assert len({tuple(jax.random.key_data(each).tolist()) for each in keys}) == len(keys) == 4


def test_decoder_layers_start_different_and_their_last_matrices_smaller(key):
    num_layers, width = 3, 64
    model = pf.Decoder(pf.DecoderConfig(VOCAB, CONTEXT, width, num_layers, 4, width, tied_embedding=False), key=key)
    matrices = [leaf for leaf in jax.tree.leaves(model.blocks) if leaf.ndim == 2]
    assert len(matrices) == 6 * num_layers
    for number, matrix in enumerate(matrices):
        assert all(np.abs(matrix - other).max() > 0.01 for other in matrices[number + 1 :])
    for block in model.blocks:
        for matrix, smaller in [
            (block.attention.output_weight, (2 * num_layers) ** 0.5),
            (block.feed_forward.out_weight, (2 * num_layers) ** 0.5),
            (block.feed_forward.in_weight, 1),
        ]:
            assert abs(float(matrix.std()) * smaller * width**0.5 - 1) < 0.05


def test_decoder_has_as_many_parameters_as_counted_by_hand():
    def count(**options):
        config = pf.DecoderConfig(VOCAB, CONTEXT, 24, 5, 6, 10, **options)
        return pf.count_parameters(eqx.filter_eval_shape(lambda key: pf.Decoder(config, key=key), jax.random.key(0)))

    block = 4 * (24 * 24 + 24) + (24 * 10 + 10) + (10 * 24 + 24) + 2 * 48
    assert count() == 11 * 24 + 9 * 24 + 5 * block + 48
    assert count(placement="post") == 11 * 24 + 9 * 24 + 5 * block
    assert count(positions="sinusoidal", tied_embedding=False) == 11 * 24 + 5 * block + 48 + 24 * 11
    assert count(positions="relative") == 11 * 24 + 32 * 6 + 5 * block + 48
    modern = 2 * 24 * 24 + 2 * 24 * 8 + 3 * 24 * 10 + 2 * 24
    assert count(positions="rotary", **GROUPED, **MODERN) == 11 * 24 + 5 * modern + 24 + 24 * 11


def test_decoder_tied_embedding_is_the_only_table(key):
    model = new_model(key)
    assert model.output_weight is None
    rows = jax.random.normal(key, (2, D_MODEL))
    plain = eqx.tree_at(lambda m: m.final_norm, model, None)
    assert_close(plain.logits(rows), np.einsum("nd,vd->nv", rows, model.embedding.weight))
    assert new_model(key, tied_embedding=False).output_weight.shape == (D_MODEL, VOCAB)


@pytest.mark.equation("eq-decoder-flops")
def test_training_flops_by_hand():
    config = pf.DecoderConfig(VOCAB, CONTEXT, 24, 5, 6, 10, **GROUPED)
    weights = 5 * (2 * 24 * 24 + 2 * 24 * 8 + 2 * 24 * 10) + 24 * 11
    for seq_len, length in [(None, 9), (4, 4)]:
        scores_and_averages = 5 * 2 * 24 * length  # each of 6 heads: 4 columns of queries, 4 of values, per key
        assert pf.training_flops(config, 1000, seq_len) == 6 * 1000 * (weights + scores_and_averages)
