"""Attention with linear biases, by slopes that are fixed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

SEQ, HEADS = 5, 3


@pytest.mark.equation("eq-positions-alibi-slopes")
@pytest.mark.parametrize(
    ("num_heads", "exponents"),
    [(1, [8]), (3, [4, 8, 2]), (8, [1, 2, 3, 4, 5, 6, 7, 8]), (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5])],
)
def test_alibi_slopes_by_hand(num_heads, exponents):
    slopes = pf.alibi_slopes(num_heads)
    np.testing.assert_allclose(slopes, [0.5**exponent for exponent in exponents], rtol=1e-7)
    assert len(set(slopes.tolist())) == num_heads


@pytest.mark.equation("eq-positions-alibi")
def test_alibi_positions_by_hand():
    # Two heads, slopes 1 / 16 and 1 / 256; queries at 1 and 3, keys at 0, 3 and 4.
    bias = pf.AlibiPositions(2).bias(np.array([1, 3]), np.array([0, 3, 4]))
    distances = np.array([[1, 2, 3], [3, 0, 1]])
    np.testing.assert_array_equal(bias, [-distances / 16, -distances / 256])
    assert jax.tree.leaves(pf.AlibiPositions(2)) == []  # nothing to learn


@pytest.mark.equation("eq-positions-alibi")
def test_alibi_positions_of_a_batch_are_those_of_each_text():
    numbers = np.random.default_rng(0)
    q_positions, kv_positions = numbers.integers(20, size=(2, 3, 5)), numbers.integers(20, size=(2, 3, 7))
    distances = np.abs(kv_positions[..., None, :] - q_positions[..., :, None])
    slopes = np.asarray(pf.alibi_slopes(HEADS))[:, None, None]
    expected = -slopes * distances[..., None, :, :].astype(np.float32)
    np.testing.assert_allclose(pf.AlibiPositions(HEADS).bias(q_positions, kv_positions), expected, rtol=1e-6)


def test_alibi_positions_keep_double_precision(x64):
    bias = pf.AlibiPositions(12).bias(np.array([32_000]), np.array([0, 31_999]))
    assert bias.dtype == jnp.float64
    np.testing.assert_allclose(bias[8], [[-32_000 * 0.5**0.5, -(0.5**0.5)]], rtol=1e-15)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.alibi_slopes(0), ValueError, r"num_heads is 0"),
        (
            lambda: pf.AlibiPositions(2).bias(np.ones((2, 5), int), np.arange(7)),
            ValueError,
            r"kv_positions has shape \(7,\)",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
