"""Numbers in few bits by groups: the same as PyTorch's own rounding, whose codes have a whole number for zero."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from plainformer.attention import quantise_groups


@pytest.mark.parametrize("bits", [8, 4])
def test_quantise_groups_agrees_with_fake_quantisation(bits):
    """Where the least number is a whole number of steps, both keep the same numbers."""
    draw, last = np.random.default_rng(0), 2**bits - 1
    steps, zeros = np.array([0.25, 0.5, 2.0, 0.0625], np.float32), np.array([3, 0, 7, 5])
    within = draw.uniform(0, last, size=(4, 6)).astype(np.float32)
    within[:, 0], within[:, -1] = 0, last  # so that the least and the largest number of each group are known
    numbers = (within - zeros[:, None]) * steps[:, None]
    theirs = torch.fake_quantize_per_channel_affine(
        torch.tensor(numbers), torch.tensor(steps), torch.tensor(zeros, dtype=torch.int32), 0, 0, last
    )
    ours = quantise_groups(jnp.asarray(numbers), bits)
    np.testing.assert_array_equal(ours.step, steps)
    np.testing.assert_allclose(ours.numbers(), theirs.numpy(), rtol=1e-5, atol=1e-5)
