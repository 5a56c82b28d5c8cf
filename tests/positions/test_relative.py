"""Chapter 05: what is added to the scores, by T5's buckets and by ALiBi's slopes, and the scores it is added to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax.test_util import check_grads

import plainformer as pf

Q_SEQ, KV_SEQ, D_K, D_V, HEADS = 5, 7, 6, 2, 3


def bucket(offset, num_buckets, max_distance, causal):
    """The bucket of one offset in whole numbers alone, so that nothing is ever rounded."""
    if causal:
        base, distance, in_direction = 0, max(-offset, 0), num_buckets
    else:
        in_direction = num_buckets // 2
        base, distance = (in_direction if offset > 0 else 0), abs(offset)
    near = in_direction // 2
    if distance < near:
        return base + distance
    # Far bucket j begins where (distance / near) ** far >= (max_distance / near) ** j.
    far, j = in_direction - near, 0
    while j < far - 1 and distance**far * near ** (j + 1) >= max_distance ** (j + 1) * near**far:
        j += 1
    return base + near + j


def offsets(q_positions, kv_positions):
    return np.array([[key - query for key in kv_positions] for query in q_positions])


@pytest.fixture
def queries(key):
    """Five queries."""
    return jax.random.normal(key, (Q_SEQ, D_K))


@pytest.fixture
def keys(key):
    """Seven keys."""
    return jax.random.normal(jax.random.fold_in(key, 1), (KV_SEQ, D_K))


@pytest.fixture
def values(key):
    """A value for each key."""
    return jax.random.normal(jax.random.fold_in(key, 2), (KV_SEQ, D_V))


@pytest.fixture
def bias(key):
    """What position adds to each score."""
    return jax.random.normal(jax.random.fold_in(key, 3), (Q_SEQ, KV_SEQ))


@pytest.mark.equation("eq-positions-buckets")
def test_relative_buckets_by_hand_if_causal():
    # 8 buckets up to distance 16: 0 to 3 have one each, then 4 to 16 is cut where a distance has grown by a factor
    # of the fourth root of 16 / 4, which is 1.414: at 4, 5.66, 8 and 11.3.
    back = -jnp.arange(21)[None]
    expected = [[0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7]]
    np.testing.assert_array_equal(pf.relative_buckets(back, num_buckets=8, max_distance=16, causal=True), expected)
    ahead = pf.relative_buckets(-back, num_buckets=8, max_distance=16, causal=True)
    np.testing.assert_array_equal(ahead, np.zeros((1, 21)))


@pytest.mark.equation("eq-positions-buckets")
def test_relative_buckets_by_hand_in_both_directions():
    # 32 buckets are 16 a direction, 8 of them for single distances, the others cut at 8 * 1.414, 16, 16 * 1.414, ...
    distances = jnp.array([[0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91, 127, 128, 10**9]])
    expected = [[0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15, 15]]
    np.testing.assert_array_equal(pf.relative_buckets(-distances), expected)
    ahead = np.array(expected) + 16
    np.testing.assert_array_equal(pf.relative_buckets(distances)[:, 1:], ahead[:, 1:])  # 0 is neither way


@pytest.mark.equation("eq-positions-buckets")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(4, 3), (8, 20), (12, 7), (16, 64), (24, 30), (32, 128), (32, 17), (64, 250)]
)
def test_relative_buckets_agree_with_whole_numbers(num_buckets, max_distance, causal):
    range_of = np.arange(-300, 301)
    expected = [[bucket(int(offset), num_buckets, max_distance, causal) for offset in range_of]]
    sizes = {"num_buckets": num_buckets, "max_distance": max_distance, "causal": causal}
    got = pf.relative_buckets(jnp.asarray(range_of)[None], **sizes)
    assert got.dtype == jnp.int32
    np.testing.assert_array_equal(got, expected)
    assert (np.diff(np.asarray(got)[0, 300::-1]) >= 0).all()  # ever farther back
    assert got.max() == num_buckets - 1
    assert got[0, 300] == 0
    assert got[0, 0] == (num_buckets if causal else num_buckets // 2) - 1


@pytest.mark.equation("eq-positions-alibi-slopes")
@pytest.mark.parametrize(
    ("num_heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (3, [4, 8, 2]),
        (4, [2, 4, 6, 8]),
        (6, [2, 4, 6, 8, 1, 3]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_alibi_slopes_by_hand(num_heads, exponents):
    slopes = pf.alibi_slopes(num_heads)
    np.testing.assert_allclose(slopes, [0.5**exponent for exponent in exponents], rtol=1e-7)
    assert len(set(slopes.tolist())) == num_heads


@pytest.mark.equation("eq-positions-alibi")
def test_alibi_positions_by_hand():
    # Two heads, slopes 1 / 16 and 1 / 256; queries at 1 and 3, keys at 0, 3 and 4.
    bias = pf.AlibiPositions(2).bias(jnp.array([1, 3]), jnp.array([0, 3, 4]))
    distances = np.array([[1, 2, 3], [3, 0, 1]])
    np.testing.assert_array_equal(bias, [-distances / 16, -distances / 256])


@pytest.mark.equation("eq-positions-relative", "eq-positions-buckets")
@pytest.mark.parametrize("causal", [False, True])
def test_relative_positions_look_up_a_number_for_every_head_and_bucket(causal, key):
    scheme = pf.RelativePositions(HEADS, num_buckets=8, max_distance=6, causal=causal, key=key)
    q_positions, kv_positions = [0, 3, 9, 2, 5], [1, 0, 4, 12, 6, 2, 7]
    bias = scheme.bias(jnp.array(q_positions), jnp.array(kv_positions))
    table, differences = np.asarray(scheme.table), offsets(q_positions, kv_positions)
    expected = [
        [[table[bucket(int(o), 8, 6, causal), head] for o in row] for row in differences] for head in range(HEADS)
    ]
    np.testing.assert_array_equal(bias, expected)


@pytest.mark.equation("eq-positions-relative")
def test_relative_positions_start_small_and_learn_only_the_buckets_in_use(key):
    table = pf.RelativePositions(30, num_buckets=400, max_distance=500, key=key).table
    assert table.shape == (400, 30)
    assert abs(float(table.std()) - 0.02) < 0.001
    scheme = pf.RelativePositions(HEADS, num_buckets=8, max_distance=6, key=key)
    gradient = eqx.filter_grad(lambda s: (s.bias(jnp.arange(2), jnp.arange(3)) ** 2).sum())(scheme).table
    np.testing.assert_array_equal((np.abs(gradient) > 0).all(axis=1), [1, 1, 0, 0, 0, 1, 1, 0])
    np.testing.assert_array_equal((np.abs(gradient) > 0).any(axis=1), [1, 1, 0, 0, 0, 1, 1, 0])


@pytest.mark.equation("eq-positions-relative", "eq-positions-alibi")
@pytest.mark.parametrize("scheme", ["relative", "alibi"])
def test_biases_are_unmoved_by_a_translation(scheme, key):
    scheme = pf.AlibiPositions(HEADS) if scheme == "alibi" else pf.RelativePositions(HEADS, key=key)
    q_positions, kv_positions = jnp.array([3, 0, 8, 40, 5]), jnp.array([0, 50, 2, 9, 4, 6, 3])
    bias = scheme.bias(q_positions, kv_positions)
    assert bias.shape == (HEADS, Q_SEQ, KV_SEQ)
    for shift in (1, 1000, 32_000):
        np.testing.assert_array_equal(scheme.bias(q_positions + shift, kv_positions + shift), bias)
    # A query that moves, and keys that do not, get something else.
    assert np.abs(scheme.bias(q_positions + 3, kv_positions) - bias).max() > 1e-3
    # Positions without a sign are subtracted as if they had one, small ones as if they were large.
    for dtype in (jnp.uint8, jnp.uint32, jnp.int8):
        np.testing.assert_array_equal(scheme.bias(q_positions.astype(dtype), kv_positions.astype(dtype)), bias)


@pytest.mark.equation("eq-positions-alibi")
def test_alibi_positions_punish_distance_evenly_on_both_sides(key):
    bias = np.asarray(pf.AlibiPositions(HEADS).bias(jnp.arange(Q_SEQ), jnp.arange(Q_SEQ)))
    np.testing.assert_array_equal(bias, bias.transpose(0, 2, 1))
    np.testing.assert_array_equal(np.diagonal(bias, axis1=1, axis2=2), np.zeros((HEADS, Q_SEQ)))
    assert (bias[:, ~np.eye(Q_SEQ, dtype=bool)] < 0).all()
    slopes = np.asarray(pf.alibi_slopes(HEADS))
    np.testing.assert_allclose(np.diff(bias[:, 0], axis=1), np.repeat(-slopes[:, None], Q_SEQ - 1, axis=1), rtol=1e-6)


def test_alibi_positions_keep_double_precision(x64):
    bias = pf.AlibiPositions(12).bias(jnp.array([32_000]), jnp.array([0, 31_999]))
    assert bias.dtype == jnp.float64
    np.testing.assert_allclose(bias[8], [[-32_000 * 0.5**0.5, -(0.5**0.5)]], rtol=1e-15)


@pytest.mark.equation("eq-positions-bias")
def test_scaled_scores_with_bias_by_hand():
    # One query (2, 0, 0, 0), two keys of dot product 6 and -2, over the root of 4: 3 and -1; plus 10 and 100.
    queries = jnp.array([[2.0, 0.0, 0.0, 0.0]])
    keys = jnp.array([[3.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 5.0, 0.0]])
    bias = jnp.array([[10.0, 100.0]])
    np.testing.assert_array_equal(pf.scaled_scores(queries, keys, bias=bias), [[13.0, 99.0]])
    np.testing.assert_array_equal(pf.scaled_scores(queries, keys, scale=0.25, bias=bias), [[11.5, 99.5]])


@pytest.mark.equation("eq-positions-bias")
@pytest.mark.parametrize("masked", [False, True])
def test_attend_with_bias_agrees_with_a_loop_in_float64(masked, queries, keys, values, bias):
    mask = pf.padding_mask(jnp.array([True] * 6 + [False]), Q_SEQ) & ~jnp.eye(Q_SEQ, KV_SEQ, dtype=bool)
    mask = mask if masked else None
    # A bias is one more pair of columns that every query and key bring along: 1 times the bias of this pair. With a
    # unit vector for each query it is a dot product again, which the reference can take.
    wide_queries = np.concatenate([queries / D_K**0.5, np.eye(Q_SEQ)], axis=1)
    wide_keys = np.concatenate([keys, np.asarray(bias).T], axis=1)
    expected = reference.attend(wide_queries, wide_keys, values, mask, scale=1.0)
    np.testing.assert_allclose(pf.attend(queries, keys, values, mask, bias=bias), expected, rtol=1e-5, atol=1e-6)
    weights = pf.attention_weights(queries, keys, mask, bias=bias)
    np.testing.assert_allclose(weights @ values, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.equation("eq-positions-bias")
def test_attend_is_unmoved_by_a_bias_that_is_the_same_for_all_keys(queries, keys, values, bias):
    plain = pf.attend(queries, keys, values)
    same = jnp.broadcast_to(bias[:, :1], bias.shape)
    np.testing.assert_allclose(pf.attend(queries, keys, values, bias=same), plain, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(pf.attend(queries, keys, values, bias=jnp.zeros_like(bias)), plain)
    assert np.abs(pf.attend(queries, keys, values, bias=bias) - plain).max() > 0.1


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_attend_in_half_precision_stays_so_with_a_bias_in_single(dtype, queries, keys, values, bias):
    halves = [a.astype(dtype) for a in (queries, keys, values)]
    assert pf.scaled_scores(*halves[:2], bias=bias).dtype == dtype
    output = pf.attend(*halves, bias=bias)
    assert output.dtype == dtype
    expected = pf.attend(queries, keys, values, bias=bias)
    np.testing.assert_allclose(output.astype(jnp.float32), expected, rtol=0, atol=float(6 * jnp.finfo(dtype).eps))


@pytest.mark.equation("eq-positions-bias", "eq-positions-relative")
def test_attend_with_a_bias_has_right_gradients(x64, key):
    scheme = pf.RelativePositions(HEADS, num_buckets=8, max_distance=6, key=key)
    shapes = [(Q_SEQ, D_K), (KV_SEQ, D_K), (KV_SEQ, D_V), (8, HEADS)]
    arrays = [jax.random.normal(k, s, jnp.float64) for k, s in zip(jax.random.split(key, 4), shapes, strict=True)]

    def output(queries, keys, values, table):  # check_grads hands over NumPy arrays
        queries, keys, values, table = map(jnp.asarray, (queries, keys, values, table))
        bias = eqx.tree_at(lambda s: s.table, scheme, table).bias(jnp.arange(Q_SEQ), jnp.arange(KV_SEQ))
        return pf.attend(queries, keys, values, bias=bias[1])

    check_grads(output, arrays, order=1, modes=("fwd", "rev"))
