"""Places in a grid of patches, one sinusoidal code for the row and one for the column."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference

import plainformer as pf
from plainformer.positions.grid import GridPositions

GRID_HEIGHT, GRID_WIDTH, D_MODEL = 2, 4, 24
CODES = reference.sinusoid_2d(GRID_HEIGHT, GRID_WIDTH, D_MODEL)


@pytest.mark.equation("eq-vision-sinusoid-2d")
def test_sinusoidal_positions_2d_by_hand():
    sin1, cos1, sin2, cos2 = 0.8414710, 0.5403023, 0.9092974, -0.4161468
    found = pf.sinusoidal_positions_2d(2, 3, 4)
    expected = [
        [0, 1, 0, 1],
        [0, 1, sin1, cos1],
        [0, 1, sin2, cos2],
        [sin1, cos1, 0, 1],
        [sin1, cos1, sin1, cos1],
        [sin1, cos1, sin2, cos2],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.equation("eq-vision-sinusoid-2d")
@pytest.mark.parametrize(("class_token", "batch"), [(False, ()), (True, (3, 7))])
def test_grid_positions_give_the_class_token_no_code(class_token, batch):
    scheme = GridPositions(GRID_HEIGHT, GRID_WIDTH, D_MODEL, class_token)
    codes = np.concatenate([np.zeros((int(class_token), D_MODEL)), CODES])
    x = np.random.default_rng(0).normal(size=(*batch, len(codes), D_MODEL)).astype(np.float32)
    found = scheme.embed(x)
    np.testing.assert_allclose(found, x + codes, atol=1e-6)
    if class_token:
        np.testing.assert_array_equal(found[..., 0, :], x[..., 0, :])
    some = np.array([2, 0])
    np.testing.assert_allclose(scheme.embed(x[..., some, :], some), x[..., some, :] + codes[some], atol=1e-6)
    assert jax.tree.leaves(scheme) == []  # nothing to learn


def test_grid_positions_keep_half_precision_as_it_is():
    dtype = jnp.bfloat16
    x = np.ones((GRID_HEIGHT * GRID_WIDTH, D_MODEL), dtype)
    found = GridPositions(GRID_HEIGHT, GRID_WIDTH, D_MODEL, False).embed(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(jnp.float32), 1 + CODES, rtol=0, atol=float(4 * jnp.finfo(dtype).eps))


SCHEME, ROWS = GridPositions(GRID_HEIGHT, GRID_WIDTH, D_MODEL, True), np.ones((9, D_MODEL), np.float32)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.sinusoidal_positions_2d(2, 4, 6), ValueError, r"d_model is 6"),
        (lambda: SCHEME.embed(ROWS[:, 1:]), ValueError, r"x has shape \(9, 23\)"),
        (lambda: SCHEME.embed(ROWS[1:]), ValueError, r"x has shape \(8, 24\)"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("position", [-1, 4])
def test_grid_positions_name_a_place_outside_the_grid(position):
    scheme = GridPositions(2, 2, 8, class_token=False)
    np.testing.assert_array_equal(scheme.embed(jnp.zeros((1, 8)), jnp.array([3])), scheme.embed(jnp.zeros((4, 8)))[3:])
    with pytest.raises(ValueError, match=rf"positions\[0\] is {position}"):
        scheme.embed(jnp.zeros((1, 8)), jnp.array([position]))
