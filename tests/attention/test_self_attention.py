"""Every step of the road from a weighted average to scaled dot-product attention."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from hypothesis import given, settings, strategies as st
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf

Q_SEQ, KV_SEQ, D_K, D_V, D_MODEL = 5, 7, 4, 3, 6
attend, attention_weights, hard_attention = map(eqx.filter_jit, (pf.attend, pf.attention_weights, pf.hard_attention))
call = eqx.filter_jit(lambda layer, *arguments: layer(*arguments))


def draw(*shape, seed=0):
    """Normal numbers, made without the compiler."""
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


QKV = draw(Q_SEQ, D_K), draw(KV_SEQ, D_K), draw(KV_SEQ, D_V)
# Every query sees something, and every key is hidden from somebody.
MASK = np.random.default_rng(0).random((Q_SEQ, KV_SEQ)) < 0.5
MASK[:, 2], MASK[0, 2:4] = True, [False, True]
CAUSAL = np.tri(5, dtype=bool)
X = draw(5, D_MODEL)
LAYER = drawn(lambda sizes, key: pf.SelfAttention(*sizes, key=key), (D_MODEL, D_K, D_V))


# --- weighted averages with fixed weights


@pytest.mark.equation("eq-self-attention-average")
def test_weighted_average_by_hand():
    values = jnp.array([[2.0, 0.0], [4.0, 6.0], [9.0, 9.0]])
    weights = jnp.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(pf.weighted_average(weights, values), [[3.0, 3.0], [9.0, 9.0]])


@pytest.mark.equation("eq-relations-window")
def test_window_weights_by_hand():
    expected = [[1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0, 1 / 3, 1 / 3, 1 / 3], [0, 0, 1 / 2, 1 / 2]]
    np.testing.assert_allclose(pf.window_weights(4, 1), expected, rtol=1e-6)


# --- scores


@pytest.mark.equation("eq-self-attention-scores")
def test_dot_product_scores_by_hand():
    scores = pf.dot_product_scores(jnp.array([[1.0, 2.0]]), jnp.array([[3.0, -1.0], [0.0, 5.0], [2.0, 2.0]]))
    np.testing.assert_allclose(scores, [[1.0, 10.0, 6.0]])


@pytest.mark.equation("eq-self-attention-shared")
def test_shared_projection_scores_are_symmetric_but_their_softmax_is_not():
    x, projection = np.asarray(X), np.asarray(draw(D_MODEL, D_K))
    scores = np.asarray(pf.shared_projection_scores(x, projection))
    np.testing.assert_allclose(scores, x @ projection @ projection.T @ x.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores, scores.T, rtol=1e-6)
    weights = np.asarray(pf.softmax(scores))
    assert np.abs(weights - weights.T).max() > 0.05
    # What the shared map does impose: going round a triangle of tokens weighs the same in both directions.
    there = weights[0, 1] * weights[1, 2] * weights[2, 0]
    back = weights[0, 2] * weights[2, 1] * weights[1, 0]
    np.testing.assert_allclose(there, back, rtol=1e-4)


@pytest.mark.equation("eq-self-attention-scaled")
def test_scaled_scores_divide_by_the_root_of_d_k():
    products = np.asarray(QKV[0]) @ np.asarray(QKV[1]).T
    np.testing.assert_allclose(pf.scaled_scores(*QKV[:2]), products / 2.0, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pf.scaled_scores(*QKV[:2], scale=3.0), 3 * products, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("unchecked")
def test_scale_may_be_learned():
    slope = jax.grad(lambda scale: pf.scaled_scores(*QKV[:2], scale=scale).sum())(3.0)
    np.testing.assert_allclose(slope, pf.dot_product_scores(*QKV[:2]).sum(), rtol=1e-5)


@pytest.mark.equation("eq-self-attention-scaled", "eq-self-attention-variance")
def test_scaled_scores_have_unit_variance_whatever_the_width():
    for d_k in (16, 256):
        queries, keys = draw(2, 400, d_k)
        assert abs(float(pf.dot_product_scores(queries, keys).var()) / d_k - 1) < 0.1
        assert abs(float(pf.scaled_scores(queries, keys).var()) - 1) < 0.1


# --- softmax and weights


@pytest.mark.equation("eq-self-attention-softmax")
def test_softmax_by_hand():
    scores = np.log(np.array([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]]))
    np.testing.assert_allclose(pf.softmax(scores), [[1 / 8, 2 / 8, 5 / 8], [3 / 8, 3 / 8, 2 / 8]], rtol=1e-6)


@pytest.mark.equation("eq-self-attention-softmax")
def test_softmax_survives_scores_that_exp_does_not():
    weights = pf.softmax(jnp.array([[1000.0, 1000.0, -1000.0]]))
    np.testing.assert_allclose(weights, [[0.5, 0.5, 0.0]])


@pytest.mark.equation("eq-self-attention-softmax")
def test_softmax_of_a_hidden_key_is_exactly_zero_and_the_rest_renormalised():
    scores = draw(Q_SEQ, KV_SEQ)
    weights = np.asarray(pf.softmax(scores, MASK))
    assert (weights[~MASK] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), np.ones(Q_SEQ), rtol=1e-6)
    open_weights = np.where(MASK, pf.softmax(scores), 0)
    np.testing.assert_allclose(weights, open_weights / open_weights.sum(axis=1, keepdims=True), rtol=1e-5)


# --- attend


@pytest.mark.equation("eq-self-attention-weights")
def test_attention_weights_rows_sum_to_one_and_columns_do_not():
    weights = np.asarray(attention_weights(*QKV[:2]))
    np.testing.assert_allclose(weights.sum(axis=1), np.ones(Q_SEQ), rtol=1e-6)
    assert np.abs(weights.sum(axis=0) - 1).max() > 0.1


@pytest.mark.equation("eq-self-attention-attend")
@settings(max_examples=50)
@given(
    sizes=st.sampled_from([(1, 5, 3, 4), (4, 1, 1, 4), (4, 9, 3, 1), (9, 9, 1, 1)]),  # each is compiled anew
    seed=st.integers(0, 2**31),
    masked=st.booleans(),
    spread=st.sampled_from([0.1, 1.0, 30.0]),
)
def test_attend_agrees_with_numpy_in_float64(sizes, seed, masked, spread):
    (q_seq, kv_seq, d_k, d_v), numbers = sizes, np.random.default_rng(seed)
    queries, keys, values = (numbers.normal(size=s) for s in ((q_seq, d_k), (kv_seq, d_k), (kv_seq, d_v)))
    mask = numbers.random((q_seq, kv_seq)) < 0.6 if masked else None
    got = attend(*(a.astype(np.float32) for a in (queries * spread, keys, values)), mask)
    expected = reference.attend(queries * spread, keys, values, mask)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=3e-5)


@pytest.mark.equation("eq-self-attention-attend")
def test_attend_has_right_gradients(x64):
    arrays = tuple(np.asarray(a, np.float64) for a in QKV)
    check_grads(jax.jit(lambda *arrays: pf.attend(*arrays, MASK)), arrays, order=2, modes=["fwd", "rev"])


@pytest.mark.equation("eq-self-attention-attend", "eq-self-attention-weights", "eq-self-attention-hard")
def test_attend_of_a_batch_of_any_rank_is_attention_one_by_one():
    batch = (2, 3)
    queries, keys, values = (draw(*batch, *each.shape) for each in QKV)
    mask, bias = np.random.default_rng(1).random((3, Q_SEQ, KV_SEQ)) < 0.6, draw(3, Q_SEQ, KV_SEQ)  # are shared
    found = attend(queries, keys, values, mask, bias=bias)
    weights, hard = attention_weights(queries, keys, mask, bias=bias), hard_attention(queries, keys, values)
    masks, biases = (np.broadcast_to(each, (*batch, Q_SEQ, KV_SEQ)) for each in (mask, bias))
    for place in np.ndindex(batch):
        one = queries[place], keys[place], values[place]
        same = {"mask": masks[place], "bias": biases[place]}
        np.testing.assert_allclose(found[place], reference.attend(*one, **same), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(weights[place], reference.attention_weights(*one[:2], **same), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(hard[place], hard_attention(*one), rtol=1e-6)


def test_attend_under_vmap_and_jit_equals_one_at_a_time():
    queries, keys, values = draw(3, 2, Q_SEQ, D_K)
    batched = eqx.filter_jit(jax.vmap(pf.attend))(queries, keys, values)
    np.testing.assert_allclose(batched[1], attend(queries[1], keys[1], values[1]), rtol=1e-5, atol=1e-6)


def test_attend_of_a_fully_hidden_row_is_zero_and_so_are_its_gradients():
    mask = MASK.copy()
    mask[3] = False
    assert (attend(*QKV, mask)[3] == 0).all()

    @jax.jit
    def pull_back(slopes, *arrays):
        return jax.vjp(lambda *arrays: pf.attend(*arrays, mask), *arrays)[1](slopes)

    of_the_row, of_all = np.zeros((Q_SEQ, D_V), np.float32), np.ones((Q_SEQ, D_V), np.float32)
    of_the_row[3] = 1
    assert all((gradient == 0.0).all() for gradient in pull_back(of_the_row, *QKV))
    assert all(np.isfinite(gradient).all() for gradient in pull_back(of_all, *QKV))


def test_attend_lets_no_gradient_back_from_a_query_to_keys_that_it_does_not_see():
    for_keys, for_values = jax.jit(jax.jacobian(lambda *arrays: pf.attend(*arrays, MASK), argnums=(1, 2)))(*QKV)
    for reach in (np.abs(for_keys).sum(axis=(1, 3)), np.abs(for_values).sum(axis=(1, 3))):  # (query, key)
        assert (reach[~MASK] == 0.0).all()
        assert (reach[MASK] > 0).all()


def test_attend_never_looks_at_padding_even_if_it_is_nan():
    queries, keys, values = QKV
    is_token = np.arange(KV_SEQ) < 4
    mask = np.tile(is_token, (Q_SEQ, 1))
    poisoned = [np.where(is_token[:, None], a, np.nan) for a in (keys, values)]
    expected = reference.attend(queries, keys[:4], values[:4])
    np.testing.assert_allclose(attend(queries, *poisoned, mask), expected, rtol=1e-5, atol=1e-6)
    gradients = jax.jit(jax.grad(lambda *arrays: pf.attend(*arrays, mask).sum(), argnums=(0, 1, 2)))(queries, *poisoned)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert all((gradient[4:] == 0.0).all() for gradient in gradients[1:])


def test_attend_passes_on_a_nan_that_only_some_queries_may_not_see():
    queries, keys, values = QKV
    mask = np.ones((Q_SEQ, KV_SEQ), bool)
    mask[0, 6] = False
    assert np.isnan(attend(queries, keys, values.at[6].set(jnp.nan), mask)[0]).all()  # documented


def test_attend_stays_inside_the_span_of_the_values():
    output, values = np.asarray(attend(*QKV)), np.asarray(QKV[2])
    assert (output <= values.max(axis=0) + 1e-6).all()
    assert (output >= values.min(axis=0) - 1e-6).all()


def test_attend_does_not_care_about_the_order_of_keys_and_follows_that_of_queries():
    queries, keys, values = map(np.asarray, QKV)
    output, order = np.asarray(attend(*QKV)), np.random.default_rng(0).permutation(KV_SEQ)
    np.testing.assert_allclose(attend(queries, keys[order], values[order]), output, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(attend(queries[::-1], keys, values), output[::-1], rtol=1e-5, atol=1e-6)


def test_attend_in_half_precision_does_not_overflow():
    dtype = jnp.float16
    queries, keys, values = (np.full(shape, fill, dtype) for *shape, fill in ((2, 3, 1), (1500, 3, 1), (1500, 4, 100)))
    for scale in (None, 1 / np.sqrt(3)):
        output = pf.attend(queries, keys, values, scale=scale)
        assert output.dtype == dtype
        np.testing.assert_allclose(output.astype(jnp.float32), np.full((2, 4), 100.0), rtol=1e-2)
    assert attention_weights(queries, keys).dtype == dtype


def test_attend_to_no_keys_at_all_is_zero():
    output = attend(np.ones((2, 3), np.float32), np.ones((0, 3), np.float32), np.ones((0, 4), np.float32))
    np.testing.assert_array_equal(output, np.zeros((2, 4)))
    assert call(LAYER, X[:0]).shape == (0, D_V)


@pytest.mark.equation("eq-self-attention-hard")
def test_hard_attention_is_the_limit_of_soft_attention():
    hard = hard_attention(*QKV)
    best = np.asarray(QKV[0] @ QKV[1].T).argmax(axis=1)
    np.testing.assert_allclose(hard, np.asarray(QKV[2])[best], rtol=1e-6)
    np.testing.assert_allclose(attend(*QKV, scale=1e4), hard, rtol=1e-4, atol=1e-4)
    assert np.abs(attend(*QKV) - hard).max() > 0.1


@pytest.mark.equation("eq-self-attention-hard")
def test_hard_attention_shares_between_ties():
    keys, values = jnp.array([[1.0], [1.0], [0.0]]), jnp.array([[2.0, 0.0], [4.0, 0.0], [9.0, 9.0]])
    np.testing.assert_allclose(hard_attention(jnp.array([[1.0]]), keys, values), [[3.0, 0.0]])
    assert np.isnan(hard_attention(jnp.array([[jnp.nan]]), keys, values)).all()


@pytest.mark.equation("eq-self-attention-hard")
def test_hard_attention_passes_gradients_to_the_values_only():
    gradients = jax.jit(jax.grad(lambda *a: pf.hard_attention(*a).sum(), (0, 1, 2)))(*QKV)
    assert [bool((g != 0).any()) for g in gradients] == [False, False, True]


# --- masks


@pytest.mark.equation("eq-self-attention-causal")
def test_causal_mask_by_hand():
    assert pf.causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.equation("eq-self-attention-causal")
def test_causal_mask_lets_no_gradient_back_from_the_future():
    jacobian = jax.jit(jax.jacobian(lambda x: LAYER(x, pf.causal_mask(5))))(X)
    reach = np.abs(jacobian).sum(axis=(1, 3))  # (output position, input position)
    assert (reach[~CAUSAL] == 0.0).all()
    assert (reach[CAUSAL] > 0).all()


@pytest.mark.equation("eq-self-attention-padding")
def test_padding_mask_of_a_batch_is_that_of_each_text():
    assert pf.padding_mask(jnp.array([True, True, False]), 2).tolist() == [[True, True, False]] * 2
    assert pf.padding_mask(jnp.array([True, False])).shape == (2, 2)
    is_token = np.random.default_rng(0).random((2, 3, 7)) < 0.5
    mask = pf.padding_mask(is_token, 5)
    np.testing.assert_array_equal(mask, np.broadcast_to(is_token[:, :, None], (2, 3, 5, 7)))


# --- the layer


@pytest.mark.equation("eq-self-attention-layer")
def test_self_attention_projects_then_attends():
    q, k, v = (np.asarray(X @ w) for w in (LAYER.query_weight, LAYER.key_weight, LAYER.value_weight))
    np.testing.assert_allclose(call(LAYER, X, CAUSAL), reference.attend(q, k, v, CAUSAL), rtol=1e-4, atol=1e-5)
    weights = np.asarray(call(LAYER.attention_weights, X, CAUSAL))
    np.testing.assert_allclose(weights, reference.attention_weights(q, k, CAUSAL), rtol=1e-4, atol=1e-5)
    square = drawn(lambda sizes, key: pf.SelfAttention(*sizes, key=key), (D_MODEL, D_K))
    assert square.value_weight.shape == (D_MODEL, D_MODEL)  # d_v is d_model unless given


def test_self_attention_starts_with_three_different_matrices_of_glorot_size(key):
    layer = pf.SelfAttention(64, 64, key=key)
    weights = [np.asarray(w) for w in (layer.query_weight, layer.key_weight, layer.value_weight)]
    for n, weight in enumerate(weights):
        assert abs(float(weight.std()) - math.sqrt(2 / 128)) < 0.01
        assert all(np.abs(weight - other).max() > 0.01 for other in weights[n + 1 :])


# --- bad input

Q, K, V = QKV
SEEN = np.ones((Q_SEQ, KV_SEQ), bool)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.attend(Q[None], K, V), ValueError, "keys"),
        (lambda: pf.attend(Q, K.T, V), ValueError, "swapped"),
        (lambda: pf.attend(Q, K, V[:6]), ValueError, "values"),
        (lambda: pf.attend(Q, K, V, SEEN.T), ValueError, "mask"),
        (lambda: pf.attend(Q, K, V, np.zeros((5, 7))), TypeError, "mask"),
        (lambda: pf.attend(Q, K, V.astype(int)), TypeError, "values"),
        (lambda: pf.attend(Q[:, :0], K[:, :0], V), ValueError, "d_k"),
        (lambda: pf.weighted_average(SEEN[:, :6] + 0.0, V), ValueError, "values"),
        (lambda: pf.dot_product_scores(Q, V), ValueError, "keys"),
        (lambda: pf.shared_projection_scores(Q, V), ValueError, "projection"),
        (lambda: pf.softmax(Q.astype(int)), TypeError, "scores"),  # not weights of 0
        (lambda: pf.softmax(Q, SEEN), ValueError, "mask"),
        (lambda: pf.scaled_scores(Q, K, scale=np.ones(3)), TypeError, "scale"),
        (lambda: pf.attention_weights(Q, K[None]), ValueError, "keys"),
        (lambda: pf.hard_attention(Q, K, V[:2]), ValueError, "values"),
        (lambda: pf.window_weights(4, -1), ValueError, "radius"),
        (lambda: pf.causal_mask(2.5), TypeError, "seq_len"),
        (lambda: pf.padding_mask(np.ones(3)), TypeError, "is_token"),
        (lambda: LAYER(Q), ValueError, "x has"),
        (lambda: LAYER(X, SEEN), ValueError, "mask"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
