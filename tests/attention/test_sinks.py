"""A softmax with a sink in its denominator: by hand, against loops in float64, in all forms of attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from jax.test_util import check_grads

import plainformer as pf
from plainformer.attention.cache import attend_to_cache

BATCH, HEADS, Q_SEQ, KV_SEQ, D_K, D_V = (2, 3), 4, 5, 7, 6, 8
NUMBERS = np.random.default_rng(3)
SINKS = jnp.asarray([-1.0, 0.0, 0.5, 2.0])
softmax_with_sink = pf.attention.softmax_with_sink


def rows(*shape):
    return jnp.asarray(NUMBERS.normal(size=shape), jnp.float32)


@pytest.mark.equation("eq-modern-sink")
def test_softmax_with_sink_is_an_ordinary_softmax_with_one_score_more_that_is_dropped():
    scores, mask = rows(*BATCH, HEADS, Q_SEQ, KV_SEQ), jnp.asarray(NUMBERS.random((Q_SEQ, KV_SEQ)) < 0.6)
    column = jnp.broadcast_to(SINKS[:, None, None], (*BATCH, HEADS, Q_SEQ, 1))
    seen = jnp.concatenate([mask, jnp.ones((Q_SEQ, 1), bool)], axis=1)
    expected = pf.softmax(jnp.concatenate([scores, column], axis=-1), seen)[..., :-1]
    assert_close(softmax_with_sink(scores, SINKS, mask), np.asarray(expected))


def test_softmax_with_sink_neither_overflows_nor_divides_by_nothing():
    scores = jnp.asarray([[[1000.0, 1001.0]]])
    found = softmax_with_sink(scores, jnp.asarray([1001.0]))
    np.testing.assert_allclose(found, softmax_with_sink(scores - 1000, jnp.ones(1)), rtol=1e-6)
    hidden = softmax_with_sink(scores, jnp.asarray([-1e9]), jnp.zeros((1, 2), bool))
    np.testing.assert_array_equal(hidden, [[[0.0, 0.0]]])


def test_softmax_with_sink_has_right_gradients(x64):
    scores, sinks = (jnp.asarray(NUMBERS.normal(size=shape)) for shape in ((2, 3, 4), (2,)))
    check_grads(softmax_with_sink, (scores, sinks), order=1, modes=["rev"])


@pytest.mark.equation("eq-modern-sink", "eq-efficiency-blockwise")
def test_blockwise_attention_with_sinks_and_its_gradients_equal_the_table(x64):
    shapes = (*BATCH, HEADS, Q_SEQ, D_K), (*BATCH, HEADS, KV_SEQ, D_K), (*BATCH, HEADS, KV_SEQ, D_V)
    arrays = [jnp.asarray(NUMBERS.normal(size=shape)) for shape in shapes]
    mask = jnp.asarray(NUMBERS.random((Q_SEQ, KV_SEQ)) < 0.6).at[2].set(False)  # one query sees nothing but the sink
    slopes = jnp.asarray(NUMBERS.normal(size=(*BATCH, HEADS, Q_SEQ, D_V)))

    def table(queries, keys, values, sinks):
        return (slopes * (softmax_with_sink(pf.scaled_scores(queries, keys), sinks, mask) @ values)).sum()

    def blocks(queries, keys, values, sinks):
        found = pf.attention.blockwise_attention(queries, keys, values, mask, sinks=sinks, block_size=3)
        return (slopes * found).sum()

    sinks = SINKS.astype(jnp.float64)
    expected, found = (jax.value_and_grad(form, (0, 1, 2, 3))(*arrays, sinks) for form in (table, blocks))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.equation("eq-modern-sink", "eq-generation-cached-attention")
def test_attend_to_cache_takes_each_query_heads_own_sink_where_heads_share_keys():
    keys, values, queries = rows(3, 2, KV_SEQ, D_K), rows(3, 2, KV_SEQ, D_V), rows(3, HEADS, 2, D_K)
    places = jnp.broadcast_to(jnp.arange(KV_SEQ), (3, KV_SEQ))
    cache = pf.attention.cache.KeyValueCache(2, 9, D_K, D_V, batch=(3,)).append(keys, values, places)
    found = attend_to_cache(queries, cache, places[:, 5:], sinks=SINKS)
    mask = np.arange(KV_SEQ) <= np.array([[5], [6]])
    for text in range(3):
        for head, sink in enumerate(SINKS):
            pair = np.asarray(keys[text, head // 2]), np.asarray(values[text, head // 2])
            assert_close(found[text, head], reference.attend(queries[text, head], *pair, mask, sink=sink))


def test_a_stack_has_a_sink_for_each_head_of_its_self_attentions_which_begins_at_zero():
    block = pf.make_block(
        pf.StackConfig(d_model=24, num_heads=6, sinks=True), cross_attention=True, key=jax.random.key(0)
    )
    np.testing.assert_array_equal(block.attention.kernel.sinks, np.zeros(6))
    assert block.cross_attention.kernel.sinks is None


@pytest.mark.usefixtures("unchecked")
def test_softmax_with_sink_names_what_is_wrong():
    with pytest.raises(TypeError, match="sinks"):
        softmax_with_sink(rows(2, 3, 4), [0.0, 1.0])
    with pytest.raises(ValueError, match="sinks"):
        softmax_with_sink(rows(2, 3, 4), rows(3))
    with pytest.raises(ValueError, match="scores"):
        softmax_with_sink(rows(3, 4), rows(3))
