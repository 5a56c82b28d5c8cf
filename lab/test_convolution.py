"""The convolutions that vision transformers are compared with are what they are called."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lab.convolution import ConvolutionalBlock, PatchConvolution


def test_a_convolutional_block_is_a_convolution_of_each_channel():
    block = ConvolutionalBlock(6, key=jax.random.key(0))
    quiet = eqx.tree_at(lambda each: each.feed_forward, block, lambda rows: 0 * rows)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 5, 4, 6)), jnp.float32)
    kernel = block.kernel[:, :, None]  # one input channel for each of six groups
    layout = ("NHWC", "HWIO", "NHWC")
    slid = jax.lax.conv_general_dilated(
        block.first_norm(x), kernel, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=6
    )
    np.testing.assert_allclose(quiet(x), x + block.mix(slid), atol=1e-5)


@pytest.mark.parametrize("pooling", ["all", "mean", "attention"])
def test_convolutions_of_patches_are_told_the_place_of_every_pixel(pooling):
    pictures = jnp.asarray(np.random.default_rng(0).random((3, 32, 32, 1)), jnp.float32)
    plain, told = (PatchConvolution(8, pooling, coordinates, key=jax.random.key(0)) for coordinates in (False, True))
    assert plain(pictures).shape == told(pictures).shape == (3, 10)
    assert told.embedding.weight.shape[0] == 3 * plain.embedding.weight.shape[0] == 192
    # The rows of patches that are equal are equal, unless their pixels know where they are.
    empty = jnp.zeros((1, 32, 32, 1))
    for model, is_told in ((plain, False), (told, True)):
        rows: list = []
        blind = eqx.tree_at(lambda each: each.blocks, model, (lambda x, seen=rows: seen.append(x) or x,))
        blind(empty)
        assert bool((abs(rows[0] - rows[0][:, :1, :1]) > 1e-3).any()) == is_told
