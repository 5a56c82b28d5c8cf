"""The recorded trainings of chapter 11 say what their cards say."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_filling as filling
import train_towers as towers
from convolution import ConvolutionalBlock, PatchConvolution

import plainformer as pf


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


def test_hidden_patches_alone_count_in_the_loss_of_filling():
    patches, shown = jnp.zeros((2, 16, 4)), jnp.asarray(filling.choices(2, 8, 0))
    hidden = filling.is_hidden(shown)
    assert hidden.sum(axis=1).tolist() == [8, 8]
    painted = jnp.where(jnp.asarray(hidden)[:, :, None], 2.0, 100.0) + patches
    assert filling.filling_loss(lambda *given: painted, filling.Hidden(patches, shown)) == pytest.approx(4)
    assert filling.error(painted, np.asarray(patches), shown) == pytest.approx(4)


def test_opponents_of_filling_are_as_recorded():
    assert filling.opponents() == pytest.approx(pf.data.load_record("filling")["opponents"], rel=1e-3)


def test_regression_fills_in_what_is_linear():
    """Each pixel twice the one before it: whatever is hidden follows from what is shown."""
    scales = np.random.default_rng(0).random((200, 1, 1)).astype(np.float32)
    images = scales * (1 + np.arange(64, dtype=np.float32)).reshape(1, 16, 4)
    shown = filling.choices(5, 8, 0)
    np.testing.assert_allclose(filling.by_regression(images, images[:5], shown, 1e-6), images[:5], atol=1e-2)


def test_numbers_that_are_held_out_are_in_no_batch():
    training = pf.data.digits().training
    images, spelt = towers.pairs_at(training, 0)(3)
    ids, is_letter = np.asarray(spelt).argmax(axis=2), np.asarray(spelt).any(axis=2)
    assert images.shape == (64, 8, 16, 1)
    written = [towers.LETTERS.decode(row[:length]) for row, length in zip(ids, is_letter.sum(axis=1), strict=True)]
    numbers = dict(zip(towers.NAMES, [*towers.NUMBERS] * 3, strict=True))
    assert not {numbers[name] for name in written} & set(towers.held_out().tolist())
    assert len({numbers[name] for name in written}) == 64


def test_digits_told_apart_are_named_as_recorded():
    assert towers.told() == pytest.approx(pf.data.load_record("towers")["told"], abs=0.005)
