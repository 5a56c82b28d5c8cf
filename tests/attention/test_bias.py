"""What position adds to the scores: the bias of `scaled_scores` and `attend`, whatever made it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf

Q_SEQ, KV_SEQ, D_K, D_V, HEADS = 5, 7, 6, 2, 3
attend, attention_weights = map(eqx.filter_jit, (pf.attend, pf.attention_weights))


def draw(*shape):
    """Normal numbers, made without the compiler."""
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


QUERIES, KEYS, VALUES, BIAS = draw(Q_SEQ, D_K), draw(KV_SEQ, D_K), draw(KV_SEQ, D_V), draw(Q_SEQ, KV_SEQ)


@pytest.mark.equation("eq-positions-bias")
def test_scaled_scores_with_bias_by_hand():
    # One query (2, 0, 0, 0), two keys of dot product 6 and -2, over the root of 4: 3 and -1; plus 10 and 100.
    queries = jnp.array([[2.0, 0.0, 0.0, 0.0]])
    keys = jnp.array([[3.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 5.0, 0.0]])
    bias = jnp.array([[10.0, 100.0]])
    np.testing.assert_array_equal(pf.scaled_scores(queries, keys, bias=bias), [[13.0, 99.0]])
    np.testing.assert_array_equal(pf.scaled_scores(queries, keys, scale=0.25, bias=bias), [[11.5, 99.5]])


@pytest.mark.equation("eq-positions-bias")
def test_attend_with_bias_agrees_with_a_loop_in_float64():
    mask = ~np.eye(Q_SEQ, KV_SEQ, dtype=bool) & (np.arange(KV_SEQ) < 6)
    # A bias is one more pair of columns that every query and key bring along: 1 times the bias of this pair. With a
    # unit vector for each query it is a dot product again, which the reference can take.
    wide_queries = np.concatenate([QUERIES / D_K**0.5, np.eye(Q_SEQ)], axis=1)
    wide_keys = np.concatenate([KEYS, BIAS.T], axis=1)
    expected = reference.attend(wide_queries, wide_keys, VALUES, mask, scale=1.0)
    np.testing.assert_allclose(attend(QUERIES, KEYS, VALUES, mask, bias=BIAS), expected, rtol=1e-5, atol=1e-6)
    weights = np.asarray(attention_weights(QUERIES, KEYS, mask, bias=BIAS))
    np.testing.assert_allclose(weights @ VALUES, expected, rtol=1e-5, atol=1e-6)


def test_attend_in_half_precision_stays_so_with_a_bias_in_single_and_its_scores_are_single():
    dtype = jnp.bfloat16
    halves = [a.astype(dtype) for a in (QUERIES, KEYS, VALUES)]
    assert pf.scaled_scores(*halves[:2], bias=BIAS).dtype == jnp.float32
    output = attend(*halves, bias=BIAS)
    assert output.dtype == dtype
    expected, atol = attend(QUERIES, KEYS, VALUES, bias=BIAS), float(6 * jnp.finfo(dtype).eps)
    np.testing.assert_allclose(output.astype(jnp.float32), expected, rtol=0, atol=atol)


@pytest.mark.equation("eq-positions-bias", "eq-positions-relative")
def test_attend_with_a_bias_has_right_gradients(x64):
    scheme = drawn(lambda heads, key: pf.RelativePositions(heads, num_buckets=8, max_distance=6, key=key), HEADS)
    arrays = tuple(np.asarray(each, np.float64) for each in (QUERIES, KEYS, VALUES, scheme.table))

    @jax.jit
    def output(queries, keys, values, table):
        bias = eqx.tree_at(lambda s: s.table, scheme, table).bias(jnp.arange(Q_SEQ), jnp.arange(KV_SEQ))
        return pf.attend(queries, keys, values, bias=bias[1])

    check_grads(output, arrays, order=1, modes=("fwd", "rev"))


@pytest.mark.parametrize("function", [pf.attend, pf.attention_weights, pf.scaled_scores])
def test_bad_biases_are_named(function):
    rows = (QUERIES, KEYS, VALUES) if function is pf.attend else (QUERIES, KEYS)
    for bias in (BIAS.T, BIAS[0], BIAS[None]):
        with pytest.raises(ValueError, match="bias"):
            function(*rows, bias=bias)
    for bias in ([[0.0]], BIAS > 0):
        with pytest.raises(TypeError, match="bias"):
            function(*rows, bias=bias)
