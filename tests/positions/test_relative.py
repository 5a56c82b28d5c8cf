"""Distances sorted into T5's buckets, and a learned bias for each."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf

HEADS = 3
KEY = jax.random.key(0)


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


def new_scheme(**options):
    return drawn(lambda heads, key: pf.RelativePositions(heads, **options, key=key), HEADS)


@pytest.mark.equation("eq-positions-buckets")
def test_relative_buckets_by_hand_if_causal():
    # 8 buckets up to distance 16: 0 to 3 have one each, then 4 to 16 is cut where a distance has grown by a factor
    # of the fourth root of 16 / 4, which is 1.414: at 4, 5.66, 8 and 11.3.
    back = -np.arange(21)[None]
    expected = [[0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7]]
    np.testing.assert_array_equal(pf.relative_buckets(back, num_buckets=8, max_distance=16, causal=True), expected)
    ahead = pf.relative_buckets(-back, num_buckets=8, max_distance=16, causal=True)
    np.testing.assert_array_equal(ahead, np.zeros((1, 21)))


@pytest.mark.equation("eq-positions-buckets")
@pytest.mark.parametrize(
    ("num_buckets", "max_distance", "causal"),
    [(4, 3, False), (8, 20, True), (24, 30, False), (32, 128, False), (32, 17, True), (64, 250, True)],
)
def test_relative_buckets_agree_with_whole_numbers(num_buckets, max_distance, causal):
    range_of = np.arange(-300, 301)
    expected = [[bucket(int(offset), num_buckets, max_distance, causal) for offset in range_of]]
    sizes = {"num_buckets": num_buckets, "max_distance": max_distance, "causal": causal}
    found = pf.relative_buckets(range_of[None], **sizes)
    assert found.dtype == jnp.int32
    found = np.asarray(found)
    np.testing.assert_array_equal(found, expected)
    assert (np.diff(found[0, 300::-1]) >= 0).all()  # ever farther back
    assert found.max() == num_buckets - 1
    assert found[0, 300] == 0
    assert found[0, 0] == (num_buckets if causal else num_buckets // 2) - 1


@pytest.mark.equation("eq-positions-relative", "eq-positions-buckets")
@pytest.mark.parametrize("causal", [False, True])
def test_relative_positions_look_up_a_number_for_every_head_and_bucket(causal):
    scheme = new_scheme(num_buckets=8, max_distance=6, causal=causal)
    q_positions, kv_positions = np.array([[0, 3, 9, 2, 5], [1, 2, 3, 4, 5]]), np.array([[1, 0, 4, 12, 6, 2, 7]] * 2)
    found, table = np.asarray(scheme.bias(q_positions, kv_positions)), np.asarray(scheme.table)
    assert found.shape == (2, HEADS, 5, 7)
    for text, head, n, m in np.ndindex(found.shape):
        offset = int(kv_positions[text, m] - q_positions[text, n])
        assert found[text, head, n, m] == table[bucket(offset, 8, 6, causal), head]
    np.testing.assert_array_equal(scheme.bias(q_positions[1], kv_positions[1]), found[1])


@pytest.mark.equation("eq-positions-relative")
def test_relative_positions_start_small_and_learn_only_the_buckets_in_use(key):
    table = np.asarray(pf.RelativePositions(30, num_buckets=400, max_distance=500, key=key).table)
    assert table.shape == (400, 30)
    assert abs(float(table.std()) - 0.02) < 0.001
    square = eqx.filter_jit(eqx.filter_grad(lambda s: (s.bias(np.arange(2), np.arange(3)) ** 2).sum()))
    gradient = np.abs(square(new_scheme(num_buckets=8, max_distance=6)).table)
    np.testing.assert_array_equal((gradient > 0).all(axis=1), [1, 1, 0, 0, 0, 1, 1, 0])
    np.testing.assert_array_equal((gradient > 0).any(axis=1), [1, 1, 0, 0, 0, 1, 1, 0])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.RelativePositions(3, num_buckets=6, key=KEY), ValueError, r"num_buckets is 6"),
        (lambda: pf.RelativePositions(3, num_buckets=7, causal=True, key=KEY), ValueError, r"num_buckets is 7"),
        (lambda: pf.RelativePositions(3, max_distance=8, key=KEY), ValueError, r"max_distance is 8"),
        (lambda: new_scheme().bias(np.ones((2, 5), int), np.arange(7)), ValueError, r"kv_positions has shape \(7,\)"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
