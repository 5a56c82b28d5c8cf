"""Each bridge between two conventions, with sizes that all differ and float64 NumPy on the other side."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

N, D, D_K, D_V = 5, 6, 4, 3


@pytest.fixture
def arrays(key):
    """Tokens and the three maps."""
    shapes = [(N, D), (D, D_K), (D, D_K), (D, D_V)]
    return [jax.random.normal(k, shape) for k, shape in zip(jax.random.split(key, 4), shapes, strict=True)]


def softmax_over_columns(scores):
    powers = np.exp(scores - scores.max(axis=0, keepdims=True))
    return powers / powers.sum(axis=0, keepdims=True)


@pytest.mark.equation("eq-notation-columns-definition")
def test_attend_in_columns_is_attend_in_rows_transposed(arrays):
    x, w_q, w_k, w_v = arrays
    x_col, u_q, u_k, u_v = (np.asarray(a, np.float64).T for a in arrays)
    weights = softmax_over_columns((u_k @ x_col).T @ (u_q @ x_col) / np.sqrt(D_K))
    np.testing.assert_allclose(pf.attention_weights(x @ w_q, x @ w_k).T, weights, rtol=1e-4, atol=1e-6)
    ours = pf.attend(x @ w_q, x @ w_k, x @ w_v).T
    np.testing.assert_allclose(ours, u_v @ x_col @ weights, rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-notation-columns-definition")
def test_causal_mask_is_upper_triangular_in_columns():
    np.testing.assert_array_equal(pf.causal_mask(N).T, np.triu(np.ones((N, N), bool)))


@pytest.mark.equation("eq-notation-bilinear-definition")
def test_dot_product_scores_are_a_bilinear_form_of_low_rank(arrays):
    x, w_q, w_k, _ = arrays
    z = np.asarray(x, np.float64).T
    form = np.asarray(w_k, np.float64) @ np.asarray(w_q, np.float64).T
    np.testing.assert_allclose(pf.dot_product_scores(x @ w_q, x @ w_k).T, z.T @ form @ z, rtol=1e-4, atol=1e-4)
    assert np.linalg.matrix_rank(form) == D_K < D


@pytest.mark.equation("eq-notation-linear-definition")
def test_a_stored_matrix_is_the_transpose_of_ours(key):
    linear = eqx.nn.Linear(D, D_V, key=key)
    x = jax.random.normal(key, (N, D))
    np.testing.assert_allclose(jax.vmap(linear)(x), x @ linear.weight.T + linear.bias[None], rtol=1e-5, atol=1e-6)


@pytest.mark.equation("eq-notation-mask-definition")
def test_softmax_with_a_mask_equals_adding_minus_infinity(key):
    scores, mask = jax.random.normal(key, (N, N)), pf.causal_mask(N)
    added = np.where(mask, 0.0, -np.inf)
    np.testing.assert_allclose(
        pf.softmax(scores, mask), softmax_over_columns((np.asarray(scores) + added).T).T, rtol=1e-5, atol=1e-7
    )


@pytest.mark.equation("eq-notation-mask-definition")
def test_mask_means_may_in_equinox_too(key):
    layer = eqx.nn.MultiheadAttention(2, D, key=key)
    x = jax.random.normal(key, (N, D))
    changed = layer(x, x.at[4].set(9.0), x.at[4].set(9.0), pf.causal_mask(N))
    np.testing.assert_allclose(changed[:4], layer(x, x, x, pf.causal_mask(N))[:4], rtol=1e-6)


@pytest.mark.equation("eq-notation-scale-definition")
def test_scaled_scores_may_take_their_factor_from_the_query_map(arrays):
    x, w_q, w_k, _ = arrays
    inside = pf.dot_product_scores(x @ (w_q / jnp.sqrt(jnp.float32(D_K))), x @ w_k)
    np.testing.assert_allclose(inside, pf.scaled_scores(x @ w_q, x @ w_k), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pf.attention_weights(x @ w_q, x @ w_k), pf.softmax(inside), rtol=1e-4, atol=1e-6)
