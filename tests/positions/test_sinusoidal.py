"""Sinusoidal codes against pencil, float64 NumPy and what they promise; the rotation that moves them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

SEQ, D_MODEL = 5, 12
POSITIONS = [4, 0, 11, 2, 7]  # in no order, one for each of the five rows
X = np.random.default_rng(0).normal(size=(SEQ, D_MODEL)).astype(np.float32)


def angle(position, pair, width, base=10_000.0):
    """The angle of one clock, in Python's own double precision."""
    return position * base ** (-2 * pair / width)


def sinusoids(positions, width, base=10_000.0):
    """Column by column, as one would do it on paper."""
    codes = np.zeros((len(positions), width))
    for n, position in enumerate(positions):
        for column in range(width):
            function = np.cos if column % 2 else np.sin
            codes[n, column] = function(angle(position, column // 2, width, base))
    return codes


@pytest.mark.equation("eq-positions-sinusoid")
def test_sinusoidal_positions_by_hand():
    # Width 4: the first clock turns by 1 radian a position, the second by 1 / 100.
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.841471, 0.540302, 0.0099998, 0.99995],
        [0.909297, -0.416147, 0.0199987, 0.99980],
    ]
    np.testing.assert_allclose(pf.sinusoidal_positions(jnp.arange(3), 4), expected, rtol=0, atol=1e-6)


@pytest.mark.equation("eq-positions-sinusoid")
@pytest.mark.parametrize("base", [10_000.0, 0.5])
def test_sinusoidal_positions_agree_with_a_loop_in_float64(base):
    codes = pf.sinusoidal_positions(np.array([*POSITIONS, -3]), D_MODEL, base=base)
    np.testing.assert_allclose(codes, sinusoids([*POSITIONS, -3], D_MODEL, base), rtol=0, atol=1e-5)


@pytest.mark.equation("eq-positions-sinusoid", "eq-positions-embed")
def test_sinusoidal_positions_of_a_batch_are_those_of_each_text():
    positions = np.random.default_rng(0).integers(20, size=(2, 3, SEQ))
    codes = sinusoids(positions.reshape(-1), D_MODEL).reshape(2, 3, SEQ, D_MODEL)
    np.testing.assert_allclose(pf.sinusoidal_positions(positions, D_MODEL), codes, rtol=0, atol=1e-5)
    x = np.random.default_rng(1).normal(size=(2, 3, SEQ, D_MODEL)).astype(np.float32)
    scheme = pf.SinusoidalPositions(D_MODEL)
    np.testing.assert_allclose(scheme.embed(x, positions), x + codes, rtol=0, atol=1e-5)
    # Positions may be shared, wholly or by some.
    np.testing.assert_allclose(scheme.embed(x, positions[1]), x + codes[1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(scheme.embed(x, positions[:, :1]), x + codes[:, :1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(scheme.embed(x), x + sinusoids(range(SEQ), D_MODEL), rtol=0, atol=1e-5)


@pytest.mark.equation("eq-positions-sinusoid")
def test_sinusoidal_positions_have_inner_products_that_depend_on_the_distance_alone():
    codes = np.asarray(pf.sinusoidal_positions(np.arange(9), D_MODEL))
    products = codes @ codes.T
    for distance in range(9):
        expected = sum(np.cos(angle(distance, pair, D_MODEL)) for pair in range(D_MODEL // 2))
        for sign in (1, -1):
            diagonal = np.diagonal(products, sign * distance)
            np.testing.assert_allclose(diagonal, np.full(9 - distance, expected), rtol=0, atol=1e-5)
    assert len({round(float(product), 3) for product in products[0]}) == 9


@pytest.mark.equation("eq-positions-shift")
def test_shift_matrix_by_hand():
    cos_fast, sin_fast, cos_slow, sin_slow = 0.540302, 0.841471, 0.99995, 0.0099998
    expected = [
        [cos_fast, -sin_fast, 0, 0],
        [sin_fast, cos_fast, 0, 0],
        [0, 0, cos_slow, -sin_slow],
        [0, 0, sin_slow, cos_slow],
    ]
    np.testing.assert_allclose(pf.shift_matrix(1, 4), expected, rtol=0, atol=1e-6)


@pytest.mark.equation("eq-positions-shift")
@pytest.mark.parametrize(("offset", "base"), [(7, 10_000.0), (-4, 50.0)])
def test_shift_matrix_moves_every_code_on(offset, base):
    before, after = (np.asarray(pf.sinusoidal_positions(np.arange(SEQ) + k, D_MODEL, base=base)) for k in (0, offset))
    shift = np.asarray(pf.shift_matrix(offset, D_MODEL, base=base))
    assert shift.shape == (D_MODEL, D_MODEL)
    np.testing.assert_allclose(before @ shift, after, rtol=0, atol=3e-6)


@pytest.mark.equation("eq-positions-embed")
def test_sinusoidal_positions_are_added_to_the_tokens():
    scheme = pf.SinusoidalPositions(D_MODEL, base=200.0)
    np.testing.assert_allclose(scheme.embed(X), X + sinusoids(range(SEQ), D_MODEL, 200.0), rtol=0, atol=1e-5)
    expected = X + sinusoids(POSITIONS, D_MODEL, 200.0)
    np.testing.assert_allclose(scheme.embed(X, np.array(POSITIONS)), expected, rtol=0, atol=1e-5)
    assert jax.tree.leaves(scheme) == []  # nothing to learn


def test_sinusoidal_positions_keep_half_precision_as_it_is():
    dtype = jnp.bfloat16
    at = np.array(POSITIONS) + 1000
    embedded = pf.SinusoidalPositions(D_MODEL).embed(X.astype(dtype), at)
    assert embedded.dtype == dtype
    np.testing.assert_allclose(
        embedded.astype(jnp.float32), X + sinusoids(at, D_MODEL), rtol=0, atol=float(4 * jnp.finfo(dtype).eps)
    )


FIVE = np.arange(5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.sinusoidal_positions(FIVE, 7), ValueError, r"d_model is 7"),
        (lambda: pf.shift_matrix(1, 3), ValueError, r"d_model is 3"),
        (lambda: jax.jit(lambda o: pf.shift_matrix(o, 4))(1.5), TypeError, r"offset holds float32"),
        (lambda: pf.SinusoidalPositions(10).embed(X), ValueError, r"x has shape \(5, 12\)"),
        (lambda: pf.SinusoidalPositions(12).embed(X.astype(int)), TypeError, r"x holds int64"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
