"""Images cut into patches, and put together again."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from plainformer.tokens.patches import image_to_patches, patches_to_image, tiling


@pytest.mark.equation("eq-subwords-patches")
def test_image_to_patches_equals_the_formula_index_by_index():
    height, width, channels, patch_height, patch_width = 6, 20, 3, 2, 5
    image = np.random.default_rng(0).normal(size=(height, width, channels)).astype(np.float32)
    patches = np.asarray(image_to_patches(image, (patch_height, patch_width)))
    assert patches.shape == (3 * 4, 2 * 5 * 3)
    for (y, x, c), value in np.ndenumerate(image):
        patch = (y // patch_height) * (width // patch_width) + x // patch_width
        feature = ((y % patch_height) * patch_width + x % patch_width) * channels + c
        assert patches[patch, feature] == value


@pytest.mark.equation("eq-subwords-patches")
@settings(max_examples=5)  # every new shape is compiled anew
@given(st.tuples(*[st.integers(1, 3)] * 5))
def test_patches_to_image_undoes_image_to_patches(sizes):
    grid_height, grid_width, patch_height, patch_width, channels = sizes
    shape = (grid_height * patch_height, grid_width * patch_width, channels)
    image = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    patches = image_to_patches(image, (patch_height, patch_width))
    back = patches_to_image(patches, (patch_height, patch_width), height=shape[0], width=shape[1])
    np.testing.assert_array_equal(back, image)


@pytest.mark.equation("eq-subwords-patches")
@pytest.mark.parametrize("batch", [(2, 7)])
def test_patches_of_several_images_are_those_of_each(batch):
    images = np.random.default_rng(0).normal(size=(*batch, 4, 6, 3)).astype(np.float32)
    patches = image_to_patches(images, (2, 3))
    assert patches.shape == (*batch, 4, 18)
    for place in np.ndindex(*batch):
        np.testing.assert_array_equal(patches[place], image_to_patches(images[place], (2, 3)))
    np.testing.assert_array_equal(patches_to_image(patches, (2, 3), height=4, width=6), images)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("side", [np.int64(3), [3, 3]])
def test_image_to_patches_of_one_side_are_square(side):
    image = np.arange(6 * 9 * 2).reshape(6, 9, 2)
    np.testing.assert_array_equal(image_to_patches(image, side), image_to_patches(image, (3, 3)))


def test_tiling_says_how_many_patches_there_are():
    assert tiling(6, 20, (2, 5)) == ((2, 5), (3, 4))


IMAGE = np.ones((8, 6, 3), np.float32)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: image_to_patches(IMAGE, 4), ValueError, r"Patches of 4 x 4 pixels do not tile an"),
        (lambda: image_to_patches(IMAGE[..., 0], 2), ValueError, r"image has shape \(8, 6\)"),
        (lambda: image_to_patches(IMAGE, (2, 2, 2)), TypeError, r"patch_size is \(2, 2, 2\)"),
        (
            lambda: patches_to_image(np.ones((7, 5, 12), np.float32), 2, height=8, width=6),
            ValueError,
            r"patches has shape \(7, 5, 12\)",
        ),
        (
            lambda: patches_to_image(np.ones((12, 11), np.float32), 2, height=8, width=6),
            ValueError,
            r"patches have 11 features",
        ),
    ],
)
def test_patches_name_bad_sizes(call, error, message):
    with pytest.raises(error, match=message):
        call()
