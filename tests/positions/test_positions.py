"""Chapter 05: sinusoids, a learned table and rotation, each against pencil, float64 NumPy and what it promises."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import plainformer as pf

SEQ, D_MODEL, HEADS, D_K = 5, 12, 3, 6
POSITIONS = [4, 0, 11, 2, 7]  # in no order, one for each of the five rows


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


@pytest.fixture
def x(key):
    """Five tokens."""
    return jax.random.normal(key, (SEQ, D_MODEL))


@pytest.fixture
def rows(key):
    """The queries of three heads."""
    return jax.random.normal(jax.random.fold_in(key, 1), (HEADS, SEQ, D_K))


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
    codes = pf.sinusoidal_positions(jnp.array([*POSITIONS, -3]), D_MODEL, base=base)
    np.testing.assert_allclose(codes, sinusoids([*POSITIONS, -3], D_MODEL, base), rtol=0, atol=1e-5)


def test_sinusoidal_positions_keep_double_precision(x64):
    codes = pf.sinusoidal_positions(jnp.array([31_999, *POSITIONS]), D_MODEL)
    assert codes.dtype == jnp.float64
    np.testing.assert_allclose(codes, sinusoids([31_999, *POSITIONS], D_MODEL), rtol=0, atol=1e-11)


@pytest.mark.parametrize("width", [8, 128])
def test_sinusoidal_positions_far_out_are_off_by_what_single_precision_costs(width):
    # A product of two rounded numbers: the angle is off by at most 2 ** -23 of itself, here 0.0038 radians.
    positions = np.arange(31_900, 32_001)
    codes = pf.sinusoidal_positions(jnp.asarray(positions), width)
    np.testing.assert_allclose(codes, sinusoids(positions, width), rtol=0, atol=32_000 * 2.0**-23)
    near = positions - 31_900
    np.testing.assert_allclose(
        pf.sinusoidal_positions(jnp.asarray(near), width), sinusoids(near, width), rtol=0, atol=100 * 2.0**-23 + 1e-6
    )


@pytest.mark.equation("eq-positions-sinusoid")
def test_sinusoidal_positions_have_inner_products_that_depend_on_the_distance_alone():
    codes = pf.sinusoidal_positions(jnp.arange(9), D_MODEL)
    products = np.asarray(codes @ codes.T)
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
    before = pf.sinusoidal_positions(jnp.arange(SEQ), D_MODEL, base=base)
    after = pf.sinusoidal_positions(jnp.arange(SEQ) + offset, D_MODEL, base=base)
    shift = pf.shift_matrix(offset, D_MODEL, base=base)
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


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_by_hand():
    # Columns 0 and 2 turn together by 1 radian a position, columns 1 and 3 by 1 / 100. So (1, 0) becomes
    # (cos 1, sin 1) = (0.540302, 0.841471), and (0, 1) becomes (-sin 0.01, cos 0.01) = (-0.0099998, 0.99995).
    rows = jnp.array([[1.0, 0.0, 0.0, 1.0]] * 2)
    expected = [[1.0, 0.0, 0.0, 1.0], [0.540302, -0.0099998, 0.841471, 0.99995]]
    np.testing.assert_allclose(pf.rotate_pairs(rows, jnp.arange(2)), expected, rtol=0, atol=1e-6)


@pytest.mark.equation("eq-positions-rotary")
@pytest.mark.parametrize("base", [10_000.0, 300.0])
def test_rotate_pairs_agrees_with_complex_numbers_in_float64(base, rows):
    positions = [*POSITIONS[:-1], -6]
    turned = pf.rotate_pairs(rows, jnp.array(positions), base=base)
    np.testing.assert_allclose(turned, rotated(rows, positions, base), rtol=0, atol=1e-5)
    np.testing.assert_allclose(pf.rotate_pairs(rows[1], jnp.array(positions), base=base), turned[1], rtol=0, atol=1e-7)


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_is_the_paper_s_up_to_the_order_of_columns(rows):
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
    theirs = neighbours(rows, POSITIONS)[..., order]
    np.testing.assert_allclose(pf.rotate_pairs(rows[..., jnp.array(order)], jnp.array(POSITIONS)), theirs, atol=1e-5)


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_keeps_lengths_and_position_0(rows):
    turned = pf.rotate_pairs(rows, jnp.array(POSITIONS))
    np.testing.assert_allclose(jnp.linalg.norm(turned, axis=2), jnp.linalg.norm(rows, axis=2), rtol=1e-6)
    np.testing.assert_array_equal(turned[:, POSITIONS.index(0)], rows[:, POSITIONS.index(0)])
    assert (jnp.abs(turned - rows).max(axis=(0, 2)) > 0.1).sum() == SEQ - 1


@pytest.mark.equation("eq-positions-rotary-offset")
def test_rotate_pairs_makes_scores_depend_on_distances_alone(rows):
    queries, keys = rows[0], rows[1]

    def scores(shift):
        at = jnp.array(POSITIONS) + shift
        return pf.dot_product_scores(pf.rotate_pairs(queries, at), pf.rotate_pairs(keys, at[::-1]))

    for shift in (1, 30, -11):
        np.testing.assert_allclose(scores(shift), scores(0), rtol=0, atol=2e-5)
    # It is also the score of the untouched query and a key that is turned by the distance.
    for n, m in [(0, 3), (2, 1)]:
        distance = POSITIONS[::-1][m] - POSITIONS[n]
        by_hand = np.asarray(queries[n], np.float64) @ rotated(keys[m : m + 1], [distance])[0]
        np.testing.assert_allclose(scores(0)[n, m], by_hand, rtol=0, atol=1e-5)
    moved = pf.dot_product_scores(
        pf.rotate_pairs(queries, jnp.array(POSITIONS)), pf.rotate_pairs(keys, jnp.array(POSITIONS))
    )
    assert np.abs(moved - scores(0)).max() > 0.1


def test_rotate_pairs_far_out_is_off_by_what_single_precision_costs(key):
    positions = np.arange(31_900, 32_001)
    queries, keys = jax.random.normal(key, (2, 101, 64))
    turned = pf.rotate_pairs(queries, jnp.asarray(positions))
    bound = 32_000 * 2.0**-23 * float(jnp.abs(queries).max()) * 2**0.5
    np.testing.assert_allclose(turned, rotated(queries, positions), rtol=0, atol=bound)
    # An angle's error is nearly the same for a query and a key close by, but not quite: scores of about 8 are off
    # by less than a hundredth of that.
    far = pf.dot_product_scores(turned, pf.rotate_pairs(keys, jnp.asarray(positions)))
    near = np.arange(101)
    expected = rotated(queries, near) @ rotated(keys, near).T
    assert 7 < expected.std() < 9
    np.testing.assert_allclose(far, expected, rtol=0, atol=0.08)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_schemes_keep_half_precision_rows_as_they_are(dtype, x, rows, key):
    at = jnp.array(POSITIONS) + 1000
    expected = rotated(rows.astype(dtype).astype(jnp.float32), np.array(POSITIONS) + 1000)
    turned = pf.rotate_pairs(rows.astype(dtype), at)
    assert turned.dtype == dtype
    np.testing.assert_allclose(turned.astype(jnp.float32), expected, rtol=0, atol=float(4 * jnp.finfo(dtype).eps))
    codes = sinusoids(np.array(POSITIONS) + 1000, D_MODEL)
    for scheme, added in [
        (pf.SinusoidalPositions(D_MODEL), codes),
        (pf.LearnedPositions(1012, D_MODEL, key=key), pf.LearnedPositions(1012, D_MODEL, key=key).table[at]),
    ]:
        embedded = scheme.embed(x.astype(dtype), at)
        assert embedded.dtype == dtype
        expected = np.asarray(x, np.float64) + np.asarray(added)
        np.testing.assert_allclose(embedded.astype(jnp.float32), expected, rtol=0, atol=float(4 * jnp.finfo(dtype).eps))


@pytest.mark.equation("eq-positions-rotary")
def test_rotate_pairs_keeps_double_precision_and_has_right_gradients(x64, key):
    rows = jax.random.normal(key, (HEADS, SEQ, D_K), jnp.float64)
    positions = jnp.array(POSITIONS) + 30_000
    np.testing.assert_allclose(pf.rotate_pairs(rows, positions), rotated(rows, positions.tolist()), rtol=0, atol=1e-10)
    check_grads(lambda r: pf.rotate_pairs(jnp.asarray(r), positions), (rows,), order=1, modes=("fwd", "rev"))


@pytest.mark.equation("eq-positions-embed")
def test_sinusoidal_positions_are_added_to_the_tokens(x):
    scheme = pf.SinusoidalPositions(D_MODEL, base=200.0)
    expected = np.asarray(x, np.float64) + sinusoids(range(SEQ), D_MODEL, 200.0)
    np.testing.assert_allclose(scheme.embed(x), expected, rtol=0, atol=1e-5)
    expected = np.asarray(x, np.float64) + sinusoids(POSITIONS, D_MODEL, 200.0)
    np.testing.assert_allclose(scheme.embed(x, jnp.array(POSITIONS)), expected, rtol=0, atol=1e-5)


@pytest.mark.equation("eq-positions-learned", "eq-positions-embed")
def test_learned_positions_are_rows_of_the_table(x, key):
    scheme = pf.LearnedPositions(13, D_MODEL, key=key)
    np.testing.assert_array_equal(scheme.embed(x), x + scheme.table[:SEQ])
    expected = [np.asarray(row + scheme.table[n]) for row, n in zip(x, POSITIONS, strict=True)]
    np.testing.assert_array_equal(scheme.embed(x, jnp.array(POSITIONS)), expected)
    np.testing.assert_array_equal(scheme.embed(x, jnp.array(POSITIONS, jnp.int8)), expected)
    exact = pf.LearnedPositions(SEQ, D_MODEL, key=key)
    np.testing.assert_array_equal(exact.embed(x), x + exact.table)


@pytest.mark.equation("eq-positions-learned")
def test_learned_positions_start_small_and_learn_only_what_they_saw(x, key):
    table = pf.LearnedPositions(400, 30, key=key).table
    assert table.shape == (400, 30)
    assert abs(float(table.std()) - 0.02) < 0.001
    assert len(np.unique(table)) > 11_000
    scheme = pf.LearnedPositions(13, D_MODEL, key=key)
    gradient = eqx.filter_grad(lambda s: (s.embed(x, jnp.array(POSITIONS)) ** 2).sum())(scheme).table
    assert set(np.flatnonzero(np.abs(gradient).sum(axis=1))) == set(POSITIONS)


@pytest.mark.equation("eq-positions-rotary")
def test_rotary_positions_count_from_0_or_as_told(rows):
    scheme = pf.RotaryPositions(base=500.0)
    np.testing.assert_allclose(scheme.rotate(rows), rotated(rows, range(SEQ), 500.0), rtol=0, atol=1e-5)
    told = scheme.rotate(rows, jnp.array(POSITIONS))
    np.testing.assert_allclose(told, rotated(rows, POSITIONS, 500.0), rtol=0, atol=1e-5)
