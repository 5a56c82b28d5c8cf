"""Chapter 10, the cache of a context: cross-attention that computes keys and values of a source text only once."""

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
    "post": {"norm_placement": "post"},
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
@pytest.mark.parametrize("num_kv_heads", [6, KV_HEADS, 1])
def test_multi_head_attention_attend_cached_agrees_with_a_loop_in_float64(num_kv_heads):
    layer = new_layer(num_kv_heads)
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
def test_multi_head_attention_cache_context_holds_all_of_the_context_as_position_zero():
    layer = new_layer()
    cache = layer.cache_context(CONTEXT, IS_TOKEN)
    assert cache.keys.shape == (TEXTS, KV_HEADS, 2, KV_SEQ)
    assert cache.values.shape == (TEXTS, KV_HEADS, KV_SEQ, 3)
    np.testing.assert_array_equal(cache.positions, np.where(IS_TOKEN, 0, -1))
    assert int(cache.length) == KV_SEQ
    keys, values = (reference.linear(CONTEXT[1], part) for part in (layer.key, layer.value))
    assert_close(cache.keys[1, 1, :, : LENGTHS[1]], keys[: LENGTHS[1], 2:4].T)  # of the second head and the second text
    assert_close(cache.values[1, 1, : LENGTHS[1]], values[: LENGTHS[1], 3:6])


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
        *((kind, NONE) for kind in KINDS),
        ("pre-grouped-modern", pf.RotaryPositions()),
        ("post", pf.RotaryPositions()),
        ("pre", pf.AlibiPositions(HEADS)),
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
@pytest.mark.parametrize("kind", ["pre-grouped-modern", "post"])
def test_transformer_block_extend_reads_the_context_of_selected_texts(kind):
    block, order = new_block(kind), np.array([1, 1, 0])  # as a beam search does
    kept = keep(block, CONTEXT, IS_TOKEN)
    found = read_in_pieces(block, X, kept.select(order))
    assert_close(found, full_call(block, X, CONTEXT[order], IS_TOKEN[order], NONE))
    pair = read_in_pieces(block, X[:2], kept.select(np.array([2, 1])))
    assert_close(pair, full_call(block, X, CONTEXT[::-1], IS_TOKEN[::-1], NONE)[:2])


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_transformer_block_extend_lets_every_token_of_the_context_reach_every_token():
    block, probe = new_block("pre"), draw(D_MODEL)

    def mixed(rows):
        kept = block.cross_attention.cache_context(rows, jnp.asarray(IS_TOKEN))
        cache = block.attention.make_cache(SEQ, batch=(TEXTS,))
        return block.extend(X, cache, jnp.asarray(PLACES), context=kept)[0] @ probe

    reach = np.abs(jax.jit(jax.jacrev(mixed))(CONTEXT)).sum(axis=4)
    assert reach.shape == (TEXTS, SEQ, TEXTS, KV_SEQ)
    for text, other in np.ndindex(TEXTS, TEXTS):
        length = LENGTHS[other] if text == other else 0  # of another text nothing, of its own no padding
        assert (reach[text, :, other, :length] > 0).all()
        assert (reach[text, :, other, length:] == 0.0).all()


@pytest.mark.equation("eq-blocks-block")
@pytest.mark.parametrize("kind", ["pre", "post-grouped"])
def test_transformer_block_weights_are_what_it_attends_with(kind):
    block, seen = new_block(kind), np.broadcast_to(IS_TOKEN[:, None], (TEXTS, SEQ, KV_SEQ))
    look = eqx.filter_jit(lambda block: block.attention_weights(X, CAUSAL, context=CONTEXT, context_mask=seen))
    own, cross = look(block)
    assert own.shape == (TEXTS, HEADS, SEQ, SEQ)
    assert cross.shape == (TEXTS, HEADS, SEQ, KV_SEQ)
    for text, length in enumerate(LENGTHS):
        arguments = X[text], block, CAUSAL, CONTEXT[text], seen[text]
        expected_own, expected_cross = reference.inside_block(*arguments)[1]
        np.testing.assert_allclose(own[text], expected_own, atol=1e-5)
        np.testing.assert_allclose(cross[text], expected_cross, atol=1e-5)
        assert (cross[text, ..., length:] == 0.0).all()


def test_transformer_block_without_cross_attention_has_weights_of_its_own_only():
    block = new_block("pre", cross_attention=False)
    own, cross = eqx.filter_jit(block.attention_weights)(X)
    assert cross is None
    np.testing.assert_allclose(own[0], reference.inside_block(X[0], block)[1][0], atol=1e-5)


LAYER, BLOCK, ALONE = new_layer(), new_block("pre-grouped-modern"), new_block("pre", cross_attention=False)
ROWS = np.ones((TEXTS, SEQ, D_MODEL), np.float32)
kept = functools.cache(lambda: LAYER.cache_context(CONTEXT, IS_TOKEN))
own = functools.cache(lambda: BLOCK.attention.make_cache(CAPACITY, batch=(TEXTS,)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: new_layer().cache_context(CONTEXT[:, :0]), ValueError, r"kv_seq is 0; expected at least 1"),
        (
            lambda: BLOCK.extend(ROWS, own(), PLACES),
            ValueError,
            r"has cross-attention and needs a context: pass context=, as its cross_attention\.cache_context makes it",
        ),
        (
            lambda: ALONE.extend(ROWS, own(), PLACES, context=kept()),
            ValueError,
            r"This block takes no context; make it with cross_attention=True",
        ),
        (
            lambda: BLOCK.extend(ROWS[:2], BLOCK.attention.make_cache(CAPACITY, batch=(2,)), PLACES[:2], context=own()),
            ValueError,
            r"cache\.keys has shape \(3, 2, 4, 8\); expected \(2, kv_heads=2, d_k=4, capacity\).* of other texts",
        ),
        (
            lambda: LAYER.attend_cached(ROWS[:, 1:], kept(), PLACES),
            ValueError,
            r"positions has shape \(3, 5\); expected \(3, seq=4\)",
        ),
        (
            lambda: LAYER.attend_cached(ROWS, kept(), PLACES[0]),
            ValueError,
            r"positions has shape \(5,\); expected \(3, seq",
        ),
        (
            lambda: LAYER.attend_cached(ROWS, ROWS, PLACES),
            TypeError,
            r"cache is of type ndarray; expected a KeyValueCache",
        ),
        (
            lambda: LAYER.cache_context(ROWS, IS_TOKEN),
            ValueError,
            r"is_token has shape \(3, 7\); expected \(3, kv_seq=5\)\. One for each token",
        ),
        (
            lambda: LAYER.cache_context(ROWS[..., 1:], IS_TOKEN),
            ValueError,
            r"context has shape \(3, 5, 23\); expected \(\.\.\., kv_seq, d_model=24\)",
        ),
        (
            lambda: LAYER.cache_context(CONTEXT, np.where(IS_TOKEN, 0.0, -np.inf)),  # as some add them to scores
            TypeError,
            r"is_token holds float64; expected bool, True for a token",
        ),
        (
            lambda: new_layer(1).attend_cached(ROWS, kept(), PLACES),
            ValueError,
            r"cache\.keys has shape \(3, 2, 2, 7\); expected \(3, kv_heads=1, d_k=2, capacity\)\. The cache is of",
        ),
        (lambda: BLOCK.attention_weights([1.0], context=ROWS), TypeError, r"x is a list; expected an array"),
        (
            lambda: BLOCK.attention_weights(ROWS, context=ROWS[0]),
            ValueError,
            r"context has shape \(5, 24\); expected \(3, kv_seq, d_model=24\)",
        ),
        (lambda: BLOCK.attention_weights(ROWS), ValueError, r"has cross-attention and needs a context: pass context="),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
