"""The cache of a context: cross-attention that computes keys and values of a source text only once."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from flat import make_block
from toy_models import drawn

import plainformer as pf

TEXTS, SEQ, KV_SEQ, D_MODEL, HEADS, KV_HEADS, D_FF, CAPACITY = 3, 5, 7, 24, 6, 2, 10, 8
LENGTHS = [7, 4, 1]
KINDS = {
    "pre": {},
    "pre-grouped-modern": {"num_kv_heads": KV_HEADS, "norm": "rms", "activation": "swiglu", "use_bias": False},
    "post-grouped": {"norm_placement": "post", "num_kv_heads": KV_HEADS},
}
PLACES = np.tile(np.arange(SEQ), (TEXTS, 1))
CAUSAL = np.tri(SEQ, dtype=bool)
NONE = pf.NoPositions()
# Which rows of the context are no padding: it is of unequal length.
IS_TOKEN = np.arange(KV_SEQ) < np.array(LENGTHS)[:, None]


def draw(*shape, seed=0):
    """Normal numbers, made without the compiler."""
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


X, CONTEXT = draw(TEXTS, SEQ, D_MODEL), draw(TEXTS, KV_SEQ, D_MODEL)


@functools.cache
def new_layer(num_kv_heads=KV_HEADS):
    options = {"num_kv_heads": num_kv_heads, "d_k": 2, "d_v": 3, "use_bias": True}
    return drawn(lambda sizes, key: pf.MultiHeadAttention(*sizes, **options, key=key), (D_MODEL, HEADS))


@functools.cache
def new_block(kind, cross_attention=True):
    options = KINDS[kind] | {"cross_attention": cross_attention}
    return drawn(lambda sizes, key: make_block(*sizes, **options, key=key), (D_MODEL, HEADS, D_FF))


@eqx.filter_jit
def read(layer, x, context, is_token, places):
    return layer.attend_cached(x, layer.cache_context(context, is_token), places)


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_attend_cached_agrees_with_a_loop_in_float64():
    layer = new_layer()
    found = read(layer, X, CONTEXT, IS_TOKEN, PLACES)
    for text, length in enumerate(LENGTHS):
        assert_close(found[text], reference.multi_head(X[text], CONTEXT[text, :length], layer))


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_cache_context_of_a_batch_of_any_rank_is_each_text_alone():
    layer, whole = new_layer(), np.ones(KV_SEQ, bool)
    found = read(layer, X[None], CONTEXT[None], IS_TOKEN[None], PLACES[None])
    assert found.shape == (1, TEXTS, SEQ, D_MODEL)
    assert_close(found[0, 0], read(layer, X[0], CONTEXT[0], whole, PLACES[0]))
    assert_close(found[0, 0], read(layer, X[0], CONTEXT[0], None, PLACES[0]))  # `None`: no padding


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_attend_cached_does_not_depend_on_where_the_reader_stands():
    early, late = (read(new_layer(), X, CONTEXT, IS_TOKEN, PLACES + start) for start in (0, 1000))
    np.testing.assert_array_equal(early, late)


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_attend_cached_gives_padding_the_bias_alone():
    layer, is_token, places = new_layer(), IS_TOKEN.copy(), PLACES.copy()
    is_token[2], places[0, :2] = False, -1
    found, bias = np.asarray(read(layer, X, CONTEXT, is_token, places)), np.asarray(layer.output.bias)
    unread = np.zeros((TEXTS, SEQ), bool)
    unread[0, :2] = unread[2] = True  # a padded reader sees nothing, nor does anybody in a context of padding
    np.testing.assert_array_equal(found[unread], np.tile(bias, (unread.sum(), 1)))
    assert (np.abs(found[~unread] - bias).max(axis=1) > 1e-3).all()


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_attend_cached_is_not_reached_by_padding_of_the_context():
    layer = new_layer()
    for padding in (1e3, np.nan):
        spoilt = np.where(IS_TOKEN[..., None], CONTEXT, np.float32(padding))
        expected = read(layer, X, CONTEXT, IS_TOKEN, PLACES)
        np.testing.assert_array_equal(read(layer, X, spoilt, IS_TOKEN, PLACES), expected)
    gradient = jax.jit(jax.grad(lambda rows: read(layer, X, rows, IS_TOKEN, PLACES).sum()))(CONTEXT)
    assert (gradient[~IS_TOKEN] == 0.0).all()
    assert (np.abs(gradient[IS_TOKEN]).max(axis=1) > 0).all()


@eqx.filter_jit
def full_call(block, x, context, is_token, scheme):
    """What the block returns for the whole texts at once, without a cache."""
    context_mask = jnp.broadcast_to(is_token[:, None, :], (TEXTS, SEQ, KV_SEQ))
    return block(x, pf.causal_mask(SEQ), context=context, context_mask=context_mask, scheme=scheme)


@eqx.filter_jit
def extend(block, rows, cache, places, context, scheme):
    return block.extend(rows, cache, places, context=context, scheme=scheme)


@eqx.filter_jit
def keep(block, context, is_token):
    return block.cross_attention.cache_context(context, is_token)


def read_in_pieces(block, x, context, scheme=NONE):
    """What the block returns token by token, after two at once."""
    cache, pieces = block.attention.make_cache(CAPACITY, batch=(len(x),)), []
    for piece in (slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)):
        rows, cache = extend(block, x[:, piece], cache, PLACES[: len(x), piece], context, scheme)
        pieces.append(rows)
    assert int(cache.length) == SEQ
    return np.concatenate(pieces, axis=1)


@pytest.mark.equation("eq-seq2seq-cached-context", "eq-generation-cached-attention")
@pytest.mark.parametrize(
    ("kind", "scheme"),
    [
        ("pre", NONE),
        ("pre-grouped-modern", pf.RotaryPositions()),
        ("post-grouped", pf.AlibiPositions(HEADS)),
    ],
)
def test_transformer_block_extend_with_a_context_equals_the_full_call(kind, scheme):
    block = new_block(kind)
    found = read_in_pieces(block, X, keep(block, CONTEXT, IS_TOKEN), scheme)
    assert_close(found, full_call(block, X, CONTEXT, IS_TOKEN, scheme))
    for text, length in enumerate(LENGTHS):  # each alone, its context not padded
        assert_close(found[text], reference.block(X[text], block, CAUSAL, CONTEXT[text, :length], scheme=scheme))


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_transformer_block_extend_reads_the_context_of_selected_texts():
    block, order = new_block("post-grouped"), np.array([1, 1, 0])  # as a beam search does
    kept = keep(block, CONTEXT, IS_TOKEN)
    found = read_in_pieces(block, X, kept.select(order))
    assert_close(found, full_call(block, X, CONTEXT[order], IS_TOKEN[order], NONE))
    pair = read_in_pieces(block, X[:2], kept.select(np.array([2, 1])))
    assert_close(pair, full_call(block, X, CONTEXT[::-1], IS_TOKEN[::-1], NONE)[:2])


LAYER, BLOCK, ALONE = new_layer(), new_block("pre-grouped-modern"), new_block("pre", cross_attention=False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda kept, own: LAYER.cache_context(CONTEXT[:, :0]), ValueError, "kv_seq"),
        (lambda kept, own: LAYER.cache_context(X, IS_TOKEN), ValueError, "is_token"),
        (lambda kept, own: LAYER.cache_context(X[..., 1:]), ValueError, "context"),
        (lambda kept, own: LAYER.cache_context(CONTEXT, IS_TOKEN + 0.0), TypeError, "is_token"),
        (lambda kept, own: LAYER.attend_cached(X[:, 1:], kept, PLACES), ValueError, "positions"),
        (lambda kept, own: LAYER.attend_cached(X, X, PLACES), TypeError, "cache"),
        (lambda kept, own: new_layer(1).attend_cached(X, kept, PLACES), ValueError, r"cache\.keys"),
        (lambda kept, own: BLOCK.extend(X, own, PLACES), ValueError, "context"),
        (lambda kept, own: BLOCK.extend(X, own, PLACES, context=kept.select(np.zeros(2, int))), ValueError, "texts"),
        (lambda kept, own: ALONE.extend(X, own, PLACES, context=kept), ValueError, "cross_attention=True"),
        (lambda kept, own: BLOCK.attention_weights(X, context=X[0]), ValueError, "context"),
        (lambda kept, own: BLOCK.attention_weights(X), ValueError, "context"),
    ],
)
def test_bad_input_is_named(call, error, message):
    kept, own = LAYER.cache_context(CONTEXT, IS_TOKEN), BLOCK.attention.make_cache(CAPACITY, batch=(TEXTS,))
    with pytest.raises(error, match=message):
        call(kept, own)
