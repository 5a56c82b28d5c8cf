"""Chapter 02: every step of the road from a weighted average to scaled dot-product attention."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from hypothesis import given, settings, strategies as st
from jax.test_util import check_grads

import plainformer as pf

Q_SEQ, KV_SEQ, D_K, D_V, D_MODEL = 5, 7, 4, 3, 6


@pytest.fixture
def qkv(key):
    """Queries, keys and values of pairwise different sizes."""
    shapes = [(Q_SEQ, D_K), (KV_SEQ, D_K), (KV_SEQ, D_V)]
    return [jax.random.normal(k, shape) for k, shape in zip(jax.random.split(key, 3), shapes, strict=True)]


@pytest.fixture
def mask(key):
    """A random mask in which every query sees something and every key is hidden from somebody."""
    drawn = jax.random.bernoulli(key, 0.5, (Q_SEQ, KV_SEQ))
    return drawn.at[:, 2].set(True).at[0, 2].set(False).at[0, 3].set(True)


# --- weighted averages with fixed weights


@pytest.mark.equation("eq-self-attention-average")
def test_weighted_average_by_hand():
    values = jnp.array([[2.0, 0.0], [4.0, 6.0], [9.0, 9.0]])
    weights = jnp.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(pf.weighted_average(weights, values), [[3.0, 3.0], [9.0, 9.0]])


@pytest.mark.equation("eq-self-attention-window")
def test_window_weights_by_hand():
    expected = [[1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0, 1 / 3, 1 / 3, 1 / 3], [0, 0, 1 / 2, 1 / 2]]
    np.testing.assert_allclose(pf.window_weights(4, 1), expected, rtol=1e-6)


@pytest.mark.equation("eq-self-attention-window")
def test_window_weights_are_a_convolution(key):
    signal = jax.random.normal(key, (9,))
    smooth = pf.weighted_average(pf.window_weights(9, 2), signal[:, None])[:, 0]
    np.testing.assert_allclose(smooth[2:-2], np.convolve(signal, np.ones(5) / 5, "valid"), rtol=1e-5)


# --- scores


@pytest.mark.equation("eq-self-attention-scores")
def test_dot_product_scores_by_hand():
    scores = pf.dot_product_scores(jnp.array([[1.0, 2.0]]), jnp.array([[3.0, -1.0], [0.0, 5.0], [2.0, 2.0]]))
    np.testing.assert_allclose(scores, [[1.0, 10.0, 6.0]])


@pytest.mark.equation("eq-self-attention-shared")
def test_shared_projection_scores_are_symmetric_but_their_softmax_is_not(key):
    x, projection = jax.random.normal(key, (5, D_MODEL)), jax.random.normal(key, (D_MODEL, D_K))
    scores = pf.shared_projection_scores(x, projection)
    np.testing.assert_allclose(scores, np.asarray(x @ projection @ projection.T @ x.T), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores, scores.T, rtol=1e-6)
    weights = pf.softmax(scores)
    assert np.abs(weights - weights.T).max() > 0.05
    # What the shared map does impose: going round a triangle of tokens weighs the same in both directions.
    there = weights[0, 1] * weights[1, 2] * weights[2, 0]
    back = weights[0, 2] * weights[2, 1] * weights[1, 0]
    np.testing.assert_allclose(there, back, rtol=1e-4)


@pytest.mark.equation("eq-self-attention-scaled")
def test_scaled_scores_divide_by_the_root_of_d_k(qkv):
    queries, keys, _ = qkv
    np.testing.assert_allclose(pf.scaled_scores(queries, keys), queries @ keys.T / 2.0, rtol=1e-5)
    np.testing.assert_allclose(pf.scaled_scores(queries, keys, scale=3.0), 3 * (queries @ keys.T), rtol=1e-5)


@pytest.mark.equation("eq-self-attention-scaled", "eq-self-attention-variance")
def test_scaled_scores_have_unit_variance_whatever_the_width(key):
    for d_k in (16, 256):
        queries, keys = jax.random.normal(key, (2, 400, d_k))
        assert abs(float(pf.dot_product_scores(queries, keys).var()) / d_k - 1) < 0.1
        assert abs(float(pf.scaled_scores(queries, keys).var()) - 1) < 0.1


# --- softmax and weights


@pytest.mark.equation("eq-self-attention-softmax")
def test_softmax_by_hand():
    scores = jnp.log(jnp.array([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]]))
    np.testing.assert_allclose(pf.softmax(scores), [[1 / 8, 2 / 8, 5 / 8], [3 / 8, 3 / 8, 2 / 8]], rtol=1e-6)


@pytest.mark.equation("eq-self-attention-softmax")
def test_softmax_survives_scores_that_exp_does_not():
    weights = pf.softmax(jnp.array([[1000.0, 1000.0, -1000.0]]))
    np.testing.assert_allclose(weights, [[0.5, 0.5, 0.0]])


@pytest.mark.equation("eq-self-attention-softmax")
def test_softmax_of_a_hidden_key_is_exactly_zero_and_the_rest_renormalised(mask, key):
    scores = jax.random.normal(key, (Q_SEQ, KV_SEQ))
    weights = pf.softmax(scores, mask)
    assert (weights[~mask] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), np.ones(Q_SEQ), rtol=1e-6)
    open_weights = np.where(mask, pf.softmax(scores), 0)
    np.testing.assert_allclose(weights, open_weights / open_weights.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.equation("eq-self-attention-weights")
def test_attention_weights_rows_sum_to_one_and_columns_do_not(qkv):
    weights = pf.attention_weights(*qkv[:2])
    np.testing.assert_allclose(weights.sum(axis=1), np.ones(Q_SEQ), rtol=1e-6)
    assert np.abs(weights.sum(axis=0) - 1).max() > 0.1


@pytest.mark.equation("eq-self-attention-weights", "eq-self-attention-attend")
def test_attend_is_the_weights_times_the_values(qkv, mask):
    queries, keys, values = qkv
    weights = pf.attention_weights(queries, keys, mask)
    np.testing.assert_allclose(pf.attend(queries, keys, values, mask), weights @ values, rtol=1e-5, atol=1e-6)


# --- attend


@pytest.mark.equation("eq-self-attention-attend")
def test_attend_by_hand():
    # Scores 0 and 2 log 3; halved by the root of d_k = 4: weights 1/4 and 3/4.
    queries = jnp.array([[2 * math.log(3.0), 0.0, 0.0, 0.0]])
    keys = jnp.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    values = jnp.array([[4.0, 0.0, -8.0], [0.0, 8.0, 0.0]])
    np.testing.assert_allclose(pf.attend(queries, keys, values), [[1.0, 6.0, -2.0]], rtol=1e-6)


@pytest.mark.equation("eq-self-attention-attend")
@settings(max_examples=200)
@given(
    q_seq=st.sampled_from([1, 4, 9]), kv_seq=st.sampled_from([1, 5, 9]), d_k=st.sampled_from([1, 3]),
    d_v=st.sampled_from([1, 4]),
    seed=st.integers(0, 2**31), masked=st.booleans(), spread=st.sampled_from([0.1, 1.0, 30.0]),
)  # fmt: skip
def test_attend_agrees_with_numpy_in_float64(q_seq, kv_seq, d_k, d_v, seed, masked, spread):
    draw = np.random.default_rng(seed)
    queries, keys, values = (draw.normal(size=s) for s in ((q_seq, d_k), (kv_seq, d_k), (kv_seq, d_v)))
    queries = queries * spread
    mask = draw.random((q_seq, kv_seq)) < 0.6 if masked else None
    got = jax.jit(pf.attend)(
        *(jnp.asarray(a, jnp.float32) for a in (queries, keys, values)), None if mask is None else jnp.asarray(mask)
    )
    np.testing.assert_allclose(got, reference.attend(queries, keys, values, mask), rtol=1e-5, atol=3e-5)


@pytest.mark.equation("eq-self-attention-attend")
def test_attend_has_right_gradients(qkv, mask, x64):
    queries, keys, values = (jnp.asarray(np.asarray(a), jnp.float64) for a in qkv)

    def attend(*arrays):  # check_grads hands over NumPy arrays
        return pf.attend(*(jnp.asarray(a) for a in arrays), mask)

    check_grads(attend, (queries, keys, values), order=2, modes=("fwd", "rev"))


def test_attend_of_a_fully_hidden_row_is_zero_and_so_are_its_gradients(qkv, mask):
    mask = mask.at[3].set(False)
    assert (pf.attend(*qkv, mask)[3] == 0).all()

    def loss(queries, keys, values):
        return pf.attend(queries, keys, values, mask)[3].sum()

    for gradient in jax.grad(loss, argnums=(0, 1, 2))(*qkv):
        assert (gradient == 0).all()
    assert all(np.isfinite(g).all() for g in jax.grad(lambda *a: pf.attend(*a, mask).sum(), (0, 1, 2))(*qkv))


def test_attend_never_looks_at_padding_even_if_it_is_nan(qkv):
    queries, keys, values = qkv
    is_token = jnp.arange(KV_SEQ) < 4
    mask = pf.padding_mask(is_token, Q_SEQ)
    poisoned = [jnp.where(is_token[:, None], a, jnp.nan) for a in (keys, values)]
    np.testing.assert_allclose(
        pf.attend(queries, *poisoned, mask), pf.attend(queries, keys[:4], values[:4]), rtol=1e-5, atol=1e-6
    )
    gradient = jax.grad(lambda q: pf.attend(q, *poisoned, mask).sum())(queries)
    assert np.isfinite(gradient).all()


def test_attend_passes_on_a_nan_that_only_some_queries_may_not_see(qkv):
    queries, keys, values = qkv
    mask = jnp.ones((Q_SEQ, KV_SEQ), bool).at[0, 6].set(False)
    assert np.isnan(pf.attend(queries, keys, values.at[6].set(jnp.nan), mask)[0]).all()  # documented


def test_attend_stays_inside_the_span_of_the_values(qkv):
    queries, keys, values = qkv
    output = pf.attend(queries, keys, values)
    assert (output <= values.max(axis=0)[None] + 1e-6).all()
    assert (output >= values.min(axis=0)[None] - 1e-6).all()


def test_attend_does_not_care_about_the_order_of_keys_and_follows_that_of_queries(qkv, key):
    queries, keys, values = qkv
    output, order = pf.attend(*qkv), jax.random.permutation(key, KV_SEQ)
    np.testing.assert_allclose(pf.attend(queries, keys[order], values[order]), output, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pf.attend(queries[::-1], keys, values), output[::-1], rtol=1e-5, atol=1e-6)


def test_attend_under_vmap_and_jit_equals_one_at_a_time(key):
    queries, keys, values = jax.random.normal(key, (3, 2, Q_SEQ, D_K))
    batched = eqx.filter_jit(jax.vmap(pf.attend))(queries, keys, values)
    for n in range(2):
        np.testing.assert_allclose(batched[n], pf.attend(queries[n], keys[n], values[n]), rtol=1e-5, atol=1e-6)


@pytest.mark.equation("eq-self-attention-hard")
def test_hard_attend_is_the_limit_of_soft_attention(qkv):
    hard = pf.hard_attend(*qkv)
    best = np.asarray(qkv[0] @ qkv[1].T).argmax(axis=1)
    np.testing.assert_allclose(hard, np.asarray(qkv[2])[best], rtol=1e-6)
    np.testing.assert_allclose(pf.attend(*qkv, scale=1e4), hard, rtol=1e-4, atol=1e-4)
    assert np.abs(pf.attend(*qkv) - hard).max() > 0.1


@pytest.mark.equation("eq-self-attention-hard")
def test_hard_attend_shares_between_ties():
    keys, values = jnp.array([[1.0], [1.0], [0.0]]), jnp.array([[2.0, 0.0], [4.0, 0.0], [9.0, 9.0]])
    np.testing.assert_allclose(pf.hard_attend(jnp.array([[1.0]]), keys, values), [[3.0, 0.0]])
    assert np.isnan(pf.hard_attend(jnp.array([[jnp.nan]]), keys, values)).all()


def test_hard_attend_passes_gradients_to_the_values_only(qkv):
    gradients = jax.grad(lambda *a: pf.hard_attend(*a).sum(), (0, 1, 2))(*qkv)
    assert [bool((g != 0).any()) for g in gradients] == [False, False, True]


# --- masks


@pytest.mark.equation("eq-self-attention-causal")
def test_causal_mask_by_hand():
    assert pf.causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.equation("eq-self-attention-causal")
def test_causal_mask_lets_no_gradient_back_from_the_future(key):
    layer = pf.SelfAttention(D_MODEL, D_K, D_V, key=key)
    x, mask = jax.random.normal(key, (5, D_MODEL)), pf.causal_mask(5)
    jacobian = np.abs(jax.jacobian(lambda x: layer(x, mask))(x)).sum(axis=(1, 3))  # (output position, input position)
    assert (jacobian[~np.asarray(mask)] == 0.0).all()
    assert (jacobian[np.asarray(mask)] > 0).all()


@pytest.mark.equation("eq-self-attention-padding")
def test_padding_mask_by_hand():
    assert pf.padding_mask(jnp.array([True, True, False]), 2).tolist() == [[True, True, False]] * 2
    assert pf.padding_mask(jnp.array([True, False])).shape == (2, 2)


# --- the layer


@pytest.mark.equation("eq-self-attention-layer")
def test_self_attention_projects_then_attends(key):
    layer, x = pf.SelfAttention(D_MODEL, D_K, D_V, key=key), jax.random.normal(key, (5, D_MODEL))
    mask = pf.causal_mask(5)
    q, k, v = (np.asarray(x @ w) for w in (layer.query_weight, layer.key_weight, layer.value_weight))
    np.testing.assert_allclose(layer(x, mask), reference.attend(q, k, v, mask), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.weights(x, mask) @ v, layer(x, mask), rtol=1e-4, atol=1e-5)
    assert pf.SelfAttention(D_MODEL, D_K, key=key)(x).shape == (5, D_MODEL)  # d_v is d_model unless given


def test_self_attention_starts_with_three_different_matrices_of_glorot_size(key):
    layer = pf.SelfAttention(64, 64, key=key)
    weights = [layer.query_weight, layer.key_weight, layer.value_weight]
    for n, weight in enumerate(weights):
        assert abs(float(weight.std()) - math.sqrt(2 / 128)) < 0.01
        assert all(np.abs(weight - other).max() > 0.01 for other in weights[n + 1 :])


def test_self_attention_follows_a_permutation_of_its_tokens(key):
    layer, x = pf.SelfAttention(D_MODEL, D_K, key=key), jax.random.normal(key, (5, D_MODEL))
    order = jnp.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(layer(x[order]), layer(x)[order], rtol=1e-5, atol=1e-6)
    assert np.abs(layer(x[order], pf.causal_mask(5)) - layer(x, pf.causal_mask(5))[order]).max() > 0.01
