"""Attention without the softmax, as weights, as sums, and token by token."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.attention import Mask, linear_attention, linear_step, linear_weights, positive_features

SEQ, D_K, D_V = 9, 4, 3


def draw(*shape, seed=0):
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


QKV = draw(2, SEQ, D_K), draw(2, SEQ, D_K, seed=1), draw(2, SEQ, D_V)


@pytest.mark.equation("eq-efficiency-features")
def test_positive_features_by_hand():
    np.testing.assert_allclose(positive_features(jnp.array([[-1.0, 0.0, 2.0]])), [[np.exp(-1), 1, 3]], rtol=1e-6)


@pytest.mark.equation("eq-efficiency-linear-weights")
def test_linear_weights_by_hand():
    """Features (1, 3) of the query, (1, 1) and (2, 1) of the keys: products 4 and 5."""
    weights = linear_weights(jnp.array([[0.0, 2.0]]), jnp.array([[0.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(weights, [[4 / 9, 5 / 9]], rtol=1e-6)


@pytest.mark.equation("eq-efficiency-linear")
@pytest.mark.parametrize(("causal", "block_size"), [(False, 4), (True, 4), (True, 128)])
def test_linear_attention_is_what_its_weights_say(causal, block_size):
    is_token = jnp.arange(SEQ) < jnp.array([[9], [5]])
    rule = Mask(is_token=is_token, causal=causal)
    expected = linear_weights(*QKV[:2], rule) @ QKV[2]
    np.testing.assert_allclose(linear_attention(*QKV, rule, block_size=block_size), expected, atol=1e-5)


@pytest.mark.equation("eq-efficiency-linear")
def test_linear_attention_has_the_gradients_of_its_weights():
    rule, slopes = Mask(causal=True), draw(2, SEQ, D_V, seed=3)

    def of(attention):
        return jax.grad(lambda qkv: (slopes * attention(*qkv)).sum())(QKV)

    expected = of(lambda q, k, v: linear_weights(q, k, rule) @ v)
    found = of(lambda q, k, v: linear_attention(q, k, v, rule, block_size=4))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_linear_attention_keeps_no_products_for_its_gradients():
    """A longer block means fewer states, and a larger table of products, which is to be computed anew."""
    short, long = (
        pf.training.count_kept_bytes(partial(linear_attention, mask=Mask(causal=True), block_size=size), *QKV)
        for size in (3, SEQ)
    )
    assert long < short, "the products of a block are kept"


@pytest.mark.equation("eq-efficiency-recurrent")
def test_linear_step_is_linear_attention_in_causal_order():
    state, outputs = jnp.zeros((2, D_K, D_V + 1)), []
    for n in range(SEQ):
        state, output = linear_step(state, *(rows[:, n] for rows in QKV))
        outputs.append(output)
    expected = linear_attention(*QKV, Mask(causal=True), block_size=4)
    np.testing.assert_allclose(jnp.stack(outputs, axis=1), expected, atol=1e-5)


def test_linear_attention_of_nothing_is_zero():
    rule = Mask(is_token=jnp.zeros((2, SEQ), bool), causal=True)
    np.testing.assert_array_equal(linear_attention(*QKV, rule), jnp.zeros((2, SEQ, D_V)))


def test_linear_attention_in_causal_order_needs_a_query_for_each_key():
    with pytest.raises(ValueError, match=r"keys has shape .*kv_seq=4"):
        linear_attention(QKV[0][:, :4], *QKV[1:], Mask(causal=True))


def test_linear_attention_refuses_a_table_and_positions_that_change_scores(key):
    layer, alibi = pf.MultiHeadAttention(8, 4, kernel=pf.attention.LinearKernel(), key=key), pf.AlibiPositions(4)
    with pytest.raises(ValueError, match="table"):
        layer(draw(5, 8), pf.causal_mask(5))
    with pytest.raises(ValueError, match="AlibiPositions"):
        layer(draw(5, 8), scheme=alibi)
    with pytest.raises(ValueError, match="AlibiPositions"):
        layer.extend(draw(5, 8), layer.make_cache(5), jnp.arange(5), scheme=alibi)
    for options in ({"position_scheme": "alibi"}, {"position_scheme": "rotary"}, {"window": 3}):
        with pytest.raises(ValueError, match="scores"):
            pf.StackConfig(attention="linear", **options)


def test_linear_layer_gives_what_its_weights_say_at_once_and_from_a_cache(key):
    layer = pf.MultiHeadAttention(8, num_heads=4, num_kv_heads=2, kernel=pf.attention.LinearKernel(), key=key)
    x, rule = draw(5, 8), Mask(causal=True)
    values = jnp.repeat(pf.split_heads(layer.value(x), 2), 2, axis=0)
    expected = layer.output(pf.merge_heads(layer.attention_weights(x, rule) @ values))
    np.testing.assert_allclose(layer(x, rule), expected, atol=1e-5, err_msg="at once")
    cached, _ = layer.extend(x, layer.make_cache(5), jnp.arange(5))
    np.testing.assert_allclose(cached, expected, atol=1e-5, err_msg="from a cache")


def test_linear_attention_in_16_bits_sums_in_32():
    values = jnp.asarray(np.tile([1.0, 3.0], 20_000)[:, None], jnp.bfloat16)
    rows = jnp.zeros((len(values), 2), jnp.bfloat16)
    for mask in (Mask(), Mask(causal=True)):
        last = linear_attention(rows, rows, values, mask)[-1]
        assert last.dtype == jnp.bfloat16
        assert last == 2
