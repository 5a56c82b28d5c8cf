"""Chapter 08, the cache of a context: cross-attention that computes keys and values of a source text only once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from redraw import redrawn

import plainformer as pf

TEXTS, SEQ, KV_SEQ, D_MODEL, HEADS, KV_HEADS, D_FF, CAPACITY = 3, 5, 7, 24, 6, 2, 10, 8
LENGTHS = [7, 4, 1]
KINDS = {
    "pre": {},
    "pre-grouped-modern": {"num_kv_heads": KV_HEADS, "norm": "rms", "activation": "swiglu", "use_bias": False},
    "post": {"placement": "post"},
    "post-grouped": {"placement": "post", "num_kv_heads": KV_HEADS},
}
PLACES = np.tile(np.arange(SEQ), (TEXTS, 1))


@pytest.fixture
def x(key):
    """Three texts of five tokens."""
    return jax.random.normal(key, (TEXTS, SEQ, D_MODEL))


@pytest.fixture
def context(key):
    """Three other texts of up to seven tokens."""
    return jax.random.normal(jax.random.fold_in(key, 1), (TEXTS, KV_SEQ, D_MODEL))


@pytest.fixture
def is_token():
    """Which rows of the context are no padding: it is of unequal length."""
    return jnp.arange(KV_SEQ)[None, :] < jnp.array(LENGTHS)[:, None]


def new_layer(key, num_kv_heads=KV_HEADS, use_bias=True):
    layer = pf.MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=num_kv_heads, d_k=2, d_v=3, use_bias=use_bias, key=key)
    return redrawn(layer, key)


def new_block(key, kind):
    block = pf.TransformerBlock(D_MODEL, HEADS, D_FF, cross_attention=True, **KINDS[kind], key=key)
    return redrawn(block, key)


def flat(rows):
    """The texts one below the other."""
    return rows.reshape(-1, D_MODEL)


@pytest.mark.equation("eq-seq2seq-cached-context")
@pytest.mark.parametrize("num_kv_heads", [None, KV_HEADS, 1])
def test_multi_head_attention_read_agrees_with_a_loop_in_float64(num_kv_heads, x, context, is_token, key):
    layer = new_layer(key, num_kv_heads)
    cache = layer.context_cache(flat(context), is_token)
    found = layer.read(flat(x), cache, jnp.asarray(PLACES)).reshape(x.shape)
    for text, length in enumerate(LENGTHS):
        assert_close(found[text], reference.multi_head(x[text], context[text, :length], layer))


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_context_cache_holds_all_of_the_context_as_position_zero(context, is_token, key):
    layer = new_layer(key)
    cache = layer.context_cache(flat(context), is_token)
    assert cache.keys.shape == (KV_HEADS * TEXTS, 2, KV_SEQ)
    assert cache.values.shape == (KV_HEADS * TEXTS, KV_SEQ, 3)
    np.testing.assert_array_equal(cache.positions, np.where(is_token, 0, -1))
    assert int(cache.length) == KV_SEQ
    keys = context[1] @ layer.key_weight[:, 2:4] + layer.key_bias[None, 2:4]
    keys = np.where(is_token[1][:, None], keys, 0)  # padding leaves nothing behind
    assert_close(cache.keys[TEXTS + 1], keys.T)  # of the second head and the second text


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_read_does_not_depend_on_where_the_reader_stands(x, context, is_token, key):
    layer = new_layer(key)
    cache = layer.context_cache(flat(context), is_token)
    early, late = (layer.read(flat(x), cache, jnp.asarray(PLACES + start)) for start in (0, 1000))
    np.testing.assert_array_equal(early, late)


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_read_gives_padding_the_bias_alone(x, context, is_token, key):
    layer = new_layer(key)
    cache = layer.context_cache(flat(context), is_token.at[2].set(False))
    found = layer.read(flat(x), cache, jnp.asarray(PLACES).at[0, :2].set(-1)).reshape(x.shape)
    unread = np.zeros((TEXTS, SEQ), bool)
    unread[0, :2] = unread[2] = True  # a padded reader sees nothing, nor does anybody in a context of padding
    for text, place in zip(*np.nonzero(unread), strict=True):
        np.testing.assert_array_equal(found[text, place], layer.output_bias)
    assert (np.abs(found[~unread] - layer.output_bias[None]).max(axis=1) > 1e-3).all()


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_multi_head_attention_read_is_not_reached_by_padding_of_the_context(x, context, is_token, key):
    layer = new_layer(key)

    def read(rows):
        return layer.read(flat(x), layer.context_cache(flat(rows), is_token), jnp.asarray(PLACES))

    spoilt = jnp.where(is_token[..., None], context, 1e3)
    np.testing.assert_array_equal(read(spoilt), read(context))
    gradient = jax.grad(lambda rows: read(rows).sum())(context)
    assert (gradient[~is_token] == 0.0).all()
    assert (np.abs(gradient[is_token]).max(axis=1) > 0).all()


def full_call(block, x, context, is_token, position=None):
    """What the block gives for the whole texts at once, without a cache."""
    context_mask = jnp.broadcast_to(is_token[:, None, :], (TEXTS, SEQ, KV_SEQ))
    more = {"context": flat(context), "context_mask": context_mask, "position": position, "num_texts": TEXTS}
    return block(flat(x), pf.causal_mask(SEQ), **more).reshape(x.shape)


@eqx.filter_jit
def extend(block, rows, cache, places, context_cache, position=None):
    found, cache = block.extend(flat(rows), cache, places, context_cache=context_cache, position=position)
    return found.reshape(rows.shape), cache


def read_in_pieces(block, x, context_cache, position=None):
    """What the block gives token by token, after two at once."""
    cache, pieces = block.attention.new_cache(CAPACITY, num_texts=len(x)), []
    for piece in (slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)):
        places = jnp.asarray(PLACES[: len(x), piece])
        rows, cache = extend(block, x[:, piece], cache, places, context_cache, position)
        pieces.append(rows)
    assert int(cache.length) == SEQ
    return jnp.concatenate(pieces, axis=1)


@pytest.mark.equation("eq-seq2seq-cached-context", "eq-decoder-cached-attention")
@pytest.mark.parametrize("position", [None, pf.RotaryPositions(), pf.AlibiPositions(HEADS)])
@pytest.mark.parametrize("kind", KINDS)
def test_transformer_block_extend_with_a_context_equals_the_full_call(kind, position, x, context, is_token, key):
    block = new_block(key, kind)
    kept = block.cross_attention.context_cache(flat(context), is_token)
    found = read_in_pieces(block, x, kept, position)
    assert_close(found, full_call(block, x, context, is_token, position))
    if position is None:
        for text, length in enumerate(LENGTHS):  # each alone, its context not padded
            expected = reference.block(x[text], block, np.tri(SEQ, dtype=bool), context[text, :length])
            assert_close(found[text], expected)


@pytest.mark.equation("eq-seq2seq-cached-context")
@pytest.mark.parametrize("kind", ["pre-grouped-modern", "post"])
def test_transformer_block_extend_reads_the_context_of_selected_texts(kind, x, context, is_token, key):
    block, order = new_block(key, kind), jnp.array([1, 1, 0])  # as a beam search does
    kept = block.cross_attention.context_cache(flat(context), is_token)
    found = read_in_pieces(block, x, kept.select(order))
    assert_close(found, full_call(block, x, context[order], is_token[order]))
    pair = read_in_pieces(block, x[:2], kept.select(jnp.array([2, 1])))
    assert_close(pair, full_call(block, x, context[::-1], is_token[::-1])[:2])


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_transformer_block_extend_lets_every_token_of_the_context_reach_every_token(x, context, is_token, key):
    block = new_block(key, "pre")
    probe = jax.random.normal(key, (D_MODEL,))

    def mixed(rows):
        kept = block.cross_attention.context_cache(flat(rows), is_token)
        places, cache = jnp.asarray(PLACES), block.attention.new_cache(SEQ, num_texts=TEXTS)
        return (extend(block, x, cache, places, kept)[0] @ probe).reshape(-1)

    reach = np.abs(jax.jit(jax.jacrev(mixed))(context)).sum(axis=3).reshape(TEXTS, SEQ, TEXTS, KV_SEQ)
    for text, other in np.ndindex(TEXTS, TEXTS):
        length = LENGTHS[other] if text == other else 0  # of another text nothing, of its own no padding
        assert (reach[text, :, other, :length] > 0).all()
        assert (reach[text, :, other, length:] == 0.0).all()


@pytest.mark.equation("eq-blocks-block")
@pytest.mark.parametrize("kind", ["pre", "post"])
def test_transformer_block_weights_are_what_it_attends_with(kind, x, context, is_token, key):
    block, mask, seen = new_block(key, kind), np.tri(SEQ, dtype=bool), np.tile(is_token[1], (SEQ, 1))
    own, cross = block.weights(x[1], jnp.asarray(mask), context=context[1], context_mask=jnp.asarray(seen))
    rows = np.asarray(x[1], np.float64)
    before = reference.normalise(rows, block.attention_norm) if kind == "pre" else rows
    between = rows + reference.multi_head(before, before, block.attention, mask)
    norm = block.cross_norm if kind == "pre" else block.attention_norm
    after = reference.normalise(between, norm)
    wanted_own = by_hand(before, before, block.attention, mask)
    wanted_cross = by_hand(after, np.asarray(context[1], np.float64), block.cross_attention, seen)
    assert own.shape == (HEADS, SEQ, SEQ)
    assert cross.shape == (HEADS, SEQ, KV_SEQ)
    np.testing.assert_allclose(own, wanted_own, atol=1e-5)
    np.testing.assert_allclose(cross, wanted_cross, atol=1e-5)
    assert (cross[..., LENGTHS[1] :] == 0.0).all()


def by_hand(x, context, layer, mask):
    """Each head's weights, in float64."""
    width, found = D_MODEL // HEADS, []
    layer = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), layer)
    for head in range(HEADS):
        cut = slice(head * width, (head + 1) * width)
        queries = x @ layer.query_weight[:, cut] + layer.query_bias[cut]
        keys = context @ layer.key_weight[:, cut] + layer.key_bias[cut]
        powers = np.where(mask, np.exp(queries @ keys.T / width**0.5), 0)
        found.append(powers / powers.sum(axis=1, keepdims=True))
    return np.array(found)


def test_transformer_block_without_cross_attention_has_weights_of_its_own_only(x, key):
    block = redrawn(pf.TransformerBlock(D_MODEL, HEADS, D_FF, key=key), key)
    own, cross = block.weights(x[0])
    assert cross is None
    np.testing.assert_array_equal(own, block.attention.weights(block.attention_norm(x[0])))


def kept_by(layer, num_texts=TEXTS):
    return layer.context_cache(jnp.ones((num_texts * KV_SEQ, D_MODEL)), jnp.ones((num_texts, KV_SEQ), bool))


def extended(block, places, rows=TEXTS * SEQ, **more):
    cache = block.attention.new_cache(CAPACITY, num_texts=TEXTS)
    return block.extend(jnp.ones((rows, D_MODEL)), cache, jnp.asarray(places), **more)


KEY = jax.random.key(0)
LAYER, BLOCK = new_layer(KEY), new_block(KEY, "pre-grouped-modern")
ROWS = jnp.ones((TEXTS * SEQ, D_MODEL))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: extended(BLOCK, PLACES),
            ValueError,
            r"has cross-attention and needs a context: pass context_cache=, as its cross_attention\.context_cache",
        ),
        (
            lambda: extended(pf.TransformerBlock(D_MODEL, HEADS, key=KEY), PLACES, context_cache=kept_by(LAYER)),
            ValueError,
            r"no cross-attention and takes no context_cache; make it with cross_attention=True",
        ),
        (
            lambda: extended(BLOCK, PLACES, context_cache=kept_by(BLOCK.cross_attention, 2)),
            ValueError,
            r"positions has shape \(3, 5\); expected \(num_texts=2, seq\)",
        ),
        (
            lambda: LAYER.read(ROWS[1:], kept_by(LAYER), jnp.asarray(PLACES)),
            ValueError,
            r"x has shape \(14, 24\); expected \(rows=15, d_model=24\)",
        ),
        (lambda: LAYER.read(ROWS, kept_by(LAYER), jnp.arange(5)), ValueError, r"positions has shape \(5,\)"),
        (
            lambda: LAYER.context_cache(ROWS, jnp.ones((TEXTS, KV_SEQ), bool)),
            ValueError,
            r"context has shape \(15, 24\); expected \(rows=21, d_model=24\)",
        ),
        (
            lambda: LAYER.context_cache(ROWS, jnp.ones(15, bool)),
            ValueError,
            r"is_token has shape \(15,\); expected \(num_texts, kv_seq\)",
        ),
        (
            lambda: LAYER.context_cache(ROWS, jnp.where(jnp.ones((TEXTS, SEQ), bool), 0.0, -jnp.inf)),
            TypeError,
            r"is_token holds float32; expected bool, True for a token",
        ),
        (
            lambda: new_layer(KEY, 1).read(ROWS, kept_by(new_layer(KEY, 2)), jnp.asarray(PLACES)),
            ValueError,
            r"cache\.keys has shape \(6, 2, 7\); expected \(rows=3, d_k=2, kv_seq\)\. The cache is of another layer",
        ),
        (lambda: BLOCK.weights([1.0], context=ROWS), TypeError, r"x is a list; expected an array"),
        (lambda: BLOCK.weights(ROWS[None], context=ROWS), ValueError, r"x has shape .* one axis too many"),
        (lambda: BLOCK.weights(ROWS), ValueError, r"has cross-attention and needs a context: pass context="),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
