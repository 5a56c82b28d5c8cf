"""Chapter 06: sinusoidal codes against pencil, float64 NumPy and what they promise; the rotation that moves them."""

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
@pytest.mark.parametrize("base", [10_000.0, 100.0, 0.5])
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
    np.testing.assert_allclose(scheme.embed(x, positions[1, 2]), x + codes[1, 2], rtol=0, atol=1e-5)
    np.testing.assert_allclose(scheme.embed(x), x + sinusoids(range(SEQ), D_MODEL), rtol=0, atol=1e-5)


def test_sinusoidal_positions_keep_double_precision(x64):
    codes = pf.sinusoidal_positions(np.array([31_999, *POSITIONS]), D_MODEL)
    assert codes.dtype == jnp.float64
    np.testing.assert_allclose(codes, sinusoids([31_999, *POSITIONS], D_MODEL), rtol=0, atol=1e-11)


@pytest.mark.parametrize("width", [8, 128])
def test_sinusoidal_positions_far_out_are_off_by_what_single_precision_costs(width):
    # A product of two rounded numbers: the angle is off by at most 2 ** -23 of itself, here 0.0038 radians.
    far = np.arange(31_900, 32_001)
    near = far - 31_900
    for positions, atol in ((far, 32_000 * 2.0**-23), (near, 100 * 2.0**-23 + 1e-6)):
        codes = pf.sinusoidal_positions(positions, width)
        np.testing.assert_allclose(codes, sinusoids(positions, width), rtol=0, atol=atol)


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
@pytest.mark.parametrize("offset", [0, 1, 7, -4])
@pytest.mark.parametrize("base", [10_000.0, 50.0])
def test_shift_matrix_moves_every_code_on(offset, base):
    before, after = (np.asarray(pf.sinusoidal_positions(np.arange(SEQ) + k, D_MODEL, base=base)) for k in (0, offset))
    shift = np.asarray(pf.shift_matrix(offset, D_MODEL, base=base))
    assert shift.shape == (D_MODEL, D_MODEL)
    np.testing.assert_allclose(before @ shift, after, rtol=0, atol=3e-6)


@pytest.mark.equation("eq-positions-shift")
def test_shift_matrix_is_a_group_of_rotations(x64):
    def shift(offset):
        return np.asarray(pf.shift_matrix(offset, D_MODEL))

    for k, m in [(1, 2), (3, -5), (400, 77)]:
        np.testing.assert_allclose(shift(k) @ shift(k).T, np.eye(D_MODEL), rtol=0, atol=1e-14)
        np.testing.assert_allclose(np.linalg.det(shift(k)), 1, rtol=1e-13)
        np.testing.assert_allclose(shift(k) @ shift(m), shift(k + m), rtol=0, atol=1e-12)
        np.testing.assert_allclose(shift(-k), shift(k).T, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(shift(0), np.eye(D_MODEL))
    np.testing.assert_array_equal(shift(jnp.asarray(3)), shift(3))


@pytest.mark.equation("eq-positions-embed")
def test_sinusoidal_positions_are_added_to_the_tokens():
    scheme = pf.SinusoidalPositions(D_MODEL, base=200.0)
    np.testing.assert_allclose(scheme.embed(X), X + sinusoids(range(SEQ), D_MODEL, 200.0), rtol=0, atol=1e-5)
    expected = X + sinusoids(POSITIONS, D_MODEL, 200.0)
    np.testing.assert_allclose(scheme.embed(X, np.array(POSITIONS)), expected, rtol=0, atol=1e-5)
    assert jax.tree.leaves(scheme) == []  # nothing to learn


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_sinusoidal_positions_keep_half_precision_as_it_is(dtype):
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
        (lambda: pf.sinusoidal_positions(FIVE, 7), ValueError, r"d_model is 7; expected even and above 0"),
        (lambda: pf.sinusoidal_positions(FIVE, 0), ValueError, r"d_model is 0; expected even and above 0"),
        (lambda: pf.sinusoidal_positions([0, 1], 4), TypeError, r"positions is a list; expected .*seq\).*jnp\.asarray"),
        (lambda: pf.sinusoidal_positions(FIVE + 0.5, 4), TypeError, r"positions holds float64; expected whole numbers"),
        (
            lambda: pf.sinusoidal_positions(FIVE > 2, 4),
            TypeError,
            r"positions holds bool; expected whole numbers, such",
        ),
        (
            lambda: pf.sinusoidal_positions(FIVE[0], 4),
            ValueError,
            r"positions has shape \(\); expected \(\.\.\., seq\)",
        ),
        (lambda: pf.sinusoidal_positions(FIVE, 4, base=0), ValueError, r"base is 0; expected finite and above 0"),
        (lambda: pf.shift_matrix(1, 3), ValueError, r"d_model is 3; expected even"),
        (lambda: jax.jit(lambda o: pf.shift_matrix(o, 4))(1.5), TypeError, r"offset holds float32; expected a whole n"),
        (lambda: pf.shift_matrix(1.5, 4), TypeError, r"offset is 1\.5; expected a whole number, how many positions"),
        (
            lambda: pf.shift_matrix(jnp.arange(2), 4),
            TypeError,
            r"offset is Array.*; expected a whole number, how many positions",
        ),
        (lambda: pf.shift_matrix(1, 4, base=-2.0), ValueError, r"base is -2\.0; expected finite and above 0"),
        (lambda: pf.SinusoidalPositions(7), ValueError, r"d_model is 7; expected even"),
        (
            lambda: pf.SinusoidalPositions(12, base=float("nan")),
            ValueError,
            r"base is nan; expected finite",
        ),
        (
            lambda: pf.SinusoidalPositions(12, base="10000"),
            TypeError,
            r"base is '10000'; expected a number, finite and above 0",
        ),
        (
            lambda: pf.SinusoidalPositions(10).embed(X),
            ValueError,
            r"x has shape \(5, 12\); .*\(\.\.\., seq, d_model=10\)",
        ),
        (lambda: pf.SinusoidalPositions(12).embed(X[0]), ValueError, r"x has shape \(12,\); .*one axis too few"),
        (lambda: pf.SinusoidalPositions(12).embed(X, np.arange(6)), ValueError, r"positions has .*expected \(seq=5,\)"),
        (
            lambda: pf.SinusoidalPositions(12).embed(X, np.ones((2, 5), int)),
            ValueError,
            r"positions has shape \(2, 5\); expected \(seq=5,\)\. What stands in front is a batch: .*jax\.vmap",
        ),
        # Sines as whole numbers would all be 0.
        (
            lambda: pf.SinusoidalPositions(12).embed(X.astype(int)),
            TypeError,
            r"x holds int64; expected floats.*x\.astype",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_codes_lie_in_few_directions_and_random_vectors_are_nearly_perpendicular_as_chapter_06_says():
    squares = np.linalg.svd(pf.sinusoidal_positions(jnp.arange(100), 512), compute_uv=False) ** 2
    assert (np.cumsum(squares) / squares.sum() < 0.9999).sum() + 1 == 35
    for width, mean in ((4, 0.42), (512, 0.035)):
        first, second = np.random.default_rng(0).normal(size=(2, 5_000, width))
        cosines = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        assert np.abs(cosines).mean() == pytest.approx(mean, rel=0.05)
