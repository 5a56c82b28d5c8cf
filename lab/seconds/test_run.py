"""Weights in whole numbers are those that were meant."""

import jax.numpy as jnp
import numpy as np

from lab.seconds import run as seconds_run


def test_rows_in_whole_numbers_by_hand():
    """The largest of a row is met exactly, and no other is off by more than half a step."""
    whole, step = seconds_run.in_whole_numbers(jnp.asarray([[127.0, -3.4], [0.0, 0.0], [7.0, -14.0]]))
    np.testing.assert_array_equal(whole, [[127, -3], [0, 0], [64, -127]])
    np.testing.assert_allclose(step, [[1], [0], [14 / 127]], rtol=1e-6)
    assert whole.dtype == jnp.int8
