"""Queries and keys turned by their positions, against pencil, complex numbers and what turning promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf

SEQ, HEADS, D_K = 5, 3, 6
POSITIONS = [4, 0, 11, 2, 7]  # in no order, one for each of the five rows
AT = np.array(POSITIONS)
ROWS = np.random.default_rng(0).normal(size=(HEADS, SEQ, D_K)).astype(np.float32)  # the queries of three heads
rotate = jax.jit(pf.rotate_pairs, static_argnames="base")


def angle(position, pair, width, base=10_000.0):
    """The angle of one pair, in Python's own double precision."""
    return position * base ** (-2 * pair / width)


def rotated(rows, positions, base=10_000.0):
    """Pair by pair, with each pair as a complex number, whose turning is a product."""
    rows = np.asarray(rows, np.float64)
    width, output = rows.shape[-1], np.zeros(rows.shape)
    for n, position in enumerate(positions):
        for pair in range(width // 2):
            number = rows[..., n, pair] + 1j * rows[..., n, pair + width // 2]
            number = number * np.exp(1j * angle(position, pair, width, base))
            output[..., n, pair], output[..., n, pair + width // 2] = number.real, number.imag
    return output


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_agrees_with_complex_numbers_in_float64():
    base = 300.0
    positions = np.array([*POSITIONS[:-1], -6])
    turned = rotate(ROWS, positions, base=base)
    np.testing.assert_allclose(turned, rotated(ROWS, positions, base), rtol=0, atol=1e-5)
    np.testing.assert_allclose(rotate(ROWS[1], positions, base=base), turned[1], rtol=0, atol=1e-6)


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_of_a_batch_turns_each_text_by_its_own_positions():
    numbers = np.random.default_rng(0)
    rows, positions = numbers.normal(size=(2, HEADS, SEQ, D_K)), numbers.integers(20, size=(2, 1, SEQ))
    turned = rotate(rows, positions)  # the same for all heads
    for text in range(2):
        np.testing.assert_allclose(turned[text], rotated(rows[text], positions[text, 0]), rtol=0, atol=1e-5)


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_is_the_paper_s_up_to_the_order_of_columns():
    def neighbours(rows, positions):
        """The paper's way: columns 2i and 2i + 1 turn together."""
        rows, output = np.asarray(rows, np.float64), np.zeros(rows.shape)
        for n, position in enumerate(positions):
            for column in range(0, D_K, 2):
                turn = angle(position, column // 2, D_K)
                matrix = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
                output[:, n, column : column + 2] = rows[:, n, column : column + 2] @ np.transpose(matrix)
        return output

    order = [0, 2, 4, 1, 3, 5]  # the first of each pair, then the second of each
    theirs = neighbours(ROWS, POSITIONS)[..., order]
    np.testing.assert_allclose(rotate(ROWS[..., order], AT), theirs, rtol=0, atol=1e-5)


@pytest.mark.equation("eq-positions-rotary-offset")
def test_rotate_pairs_makes_scores_depend_on_distances_alone():
    queries, keys = ROWS[0], ROWS[1]

    def scores(q_positions, kv_positions):
        return np.asarray(rotate(queries, q_positions)) @ np.asarray(rotate(keys, kv_positions)).T

    still = scores(AT, AT[::-1])
    for shift in (1, 30, -11):
        np.testing.assert_allclose(scores(AT + shift, AT[::-1] + shift), still, rtol=0, atol=2e-5)
    # It is also the score of the untouched query and a key that is turned by the distance.
    for n, m in [(0, 3), (2, 1)]:
        distance = POSITIONS[::-1][m] - POSITIONS[n]
        by_hand = queries[n].astype(np.float64) @ rotated(keys[m : m + 1], [distance])[0]
        np.testing.assert_allclose(still[n, m], by_hand, rtol=0, atol=1e-5)
    assert np.abs(scores(AT, AT) - still).max() > 0.1


def test_rotate_pairs_keeps_half_precision_as_it_is():
    dtype = jnp.bfloat16
    halves = ROWS.astype(dtype)
    turned = rotate(halves, AT + 1000)
    assert turned.dtype == dtype
    expected, atol = rotated(halves.astype(np.float32), AT + 1000), float(4 * jnp.finfo(dtype).eps)
    np.testing.assert_allclose(turned.astype(jnp.float32), expected, rtol=0, atol=atol)


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_keeps_double_precision_and_has_right_gradients(x64):
    rows, positions = ROWS.astype(np.float64), AT + 30_000
    np.testing.assert_allclose(rotate(rows, positions), rotated(rows, positions), rtol=0, atol=1e-10)
    check_grads(jax.jit(lambda r: pf.rotate_pairs(r, positions)), (rows,), order=1, modes=("fwd", "rev"))


@pytest.mark.equation("eq-positions-rotary")
def test_rotary_positions_count_from_0_or_as_told():
    scheme = pf.RotaryPositions(base=500.0)
    np.testing.assert_allclose(scheme.rotate(ROWS), rotated(ROWS, range(SEQ), 500.0), rtol=0, atol=1e-5)
    np.testing.assert_allclose(scheme.rotate(ROWS, AT), rotated(ROWS, POSITIONS, 500.0), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(scheme.rotate(ROWS, AT.astype(np.uint8)), scheme.rotate(ROWS, AT))
    assert jax.tree.leaves(scheme) == []  # nothing to learn


X = np.ones((5, 12), np.float32)
LAYER = drawn(lambda sizes, key: pf.MultiHeadAttention(*sizes, key=key), (12, 4))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.rotate_pairs(X[:, :3], np.arange(5)), ValueError, r"d_k is 3"),
        (lambda: pf.rotate_pairs(X.astype(int), np.arange(5)), TypeError, r"rows holds int64"),
        (lambda: pf.RotaryPositions(base=0.0), ValueError, r"base is 0\.0"),
        (lambda: LAYER(X, scheme=pf.RotaryPositions()), ValueError, r"Of the 3 columns of a key, fraction=1\.0"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_scaled_positions_turn_pairs_by_the_slower_speeds():
    scaling = pf.positions.RotaryScaling(factor=4.0, trained_len=16)
    rows = jnp.ones((1, 4))
    found = pf.rotate_pairs(rows, jnp.asarray([10]), base=100.0, scaling=scaling)
    angles = 10 * scaling.slowed(np.array([1.0, 0.1]))
    expected = np.concatenate([np.cos(angles) - np.sin(angles), np.sin(angles) + np.cos(angles)])
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    assert not np.allclose(found, pf.rotate_pairs(rows, jnp.asarray([10]), base=100.0))
