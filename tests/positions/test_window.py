"""Near tokens only: `Window` around another scheme."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.positions.window import Window

KEY = jax.random.key(20170612)


def test_window_by_hand():
    near = Window(pf.NoPositions(), width=2).sees(jnp.arange(4), jnp.arange(4))
    np.testing.assert_array_equal(near, [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]])
    narrower = Window(Window(pf.NoPositions(), width=2), width=1)
    np.testing.assert_array_equal(narrower.sees(jnp.arange(4), jnp.arange(4)), np.eye(4))


@pytest.mark.parametrize("scheme", [pf.AlibiPositions(3), pf.RelativePositions(3, key=KEY)])
def test_window_keeps_the_bias_of_its_scheme(scheme):
    positions = jnp.arange(7)
    expected, found = (each.bias(positions, positions + 2) for each in (scheme, Window(scheme, 4)))
    np.testing.assert_array_equal(found, expected)


def test_window_turns_as_its_scheme_does():
    rows, positions = jax.random.normal(KEY, (5, 4)), jnp.asarray([3, 1, 4, 1, 5])
    found = Window(pf.RotaryPositions(), 2).rotate(rows, positions)
    np.testing.assert_array_equal(found, pf.RotaryPositions().rotate(rows, positions))


def test_what_is_out_of_the_window_reaches_a_token_through_further_blocks_only():
    def model(num_layers):
        stack = pf.StackConfig(d_model=12, num_layers=num_layers, num_heads=3, window=3, position_scheme="none")
        return pf.Decoder(pf.DecoderConfig(11, 9, stack=stack), key=KEY)

    def reached(num_layers):
        decoder = model(num_layers)
        one, other = (decoder(jnp.asarray([token, 1, 2, 3, 4, 5, 6, 7])) for token in (0, 10))
        return np.flatnonzero(np.abs(one - other).max(axis=1) > 1e-6)

    np.testing.assert_array_equal(reached(1), [0, 1, 2])  # fewer than 3 away
    np.testing.assert_array_equal(reached(2), [0, 1, 2, 3, 4])


def test_window_is_at_least_one_token_wide():
    with pytest.raises(ValueError, match="width is 0"):
        Window(pf.NoPositions(), 0)
