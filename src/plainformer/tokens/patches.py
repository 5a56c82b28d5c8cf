"""Images as tokens: cutting them into patches, and putting the patches back together (chapter on vision)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Num

from plainformer.checks import Positive, check_axes, check_each, checked

Sides = int | Sequence[int]


@checked
def image_to_patches(
    image: Num[Array, "*batch height width channels"], patch_size: Sides
) -> Num[Array, "*batch num_patches patch_features"]:
    r"""Cut an image into patches, and write each one as a row.

    Implements `eq-subwords-patches`; Dosovitskiy et al. (2021), section 3.1. Patches are in reading order, from the
    left and then down; so are the pixels of a patch, and each pixel's channels stay together. `patch_size` is the side
    of a square patch, or its `(height, width)`, in pixels; `ValueError` if such patches do not tile the image.

    Example:
        The pixels of a grey image, numbered in reading order; each row is a patch of two by two.

        >>> print(pf.image_to_patches(jnp.arange(16).reshape(4, 4, 1), 2))
        [[ 0  1  4  5]
         [ 2  3  6  7]
         [ 8  9 12 13]
         [10 11 14 15]]
    """
    *batch, height, width, channels = image.shape
    (patch_height, patch_width), (grid_height, grid_width) = tiling(height, width, patch_size)
    blocks = image.reshape(*batch, grid_height, patch_height, grid_width, patch_width, channels)
    patches = blocks.swapaxes(-4, -3)
    return patches.reshape(*batch, grid_height * grid_width, patch_height * patch_width * channels)


@checked
def patches_to_image(
    patches: Num[Array, "*batch num_patches patch_features"], patch_size: Sides, *, height: Positive, width: Positive
) -> Num[Array, "*batch height width channels"]:
    """Put the patches back together, to an image of this size in pixels: the inverse of `image_to_patches`."""
    (patch_height, patch_width), (grid_height, grid_width) = tiling(height, width, patch_size)
    num_patches = grid_height * grid_width
    hint = f"An image of {height} x {width} pixels takes {num_patches} such patches."
    check_axes("patches", patches, hint, **{"*batch": None}, num_patches=num_patches, patch_features=None)
    *batch, _, features = patches.shape
    pixels = patch_height * patch_width
    channels, rest = divmod(features, pixels)
    if rest:
        raise ValueError(f"patches have {features} features; expected a multiple of {pixels}, the pixels of a patch.")
    blocks = patches.reshape(*batch, grid_height, grid_width, patch_height, patch_width, channels)
    return blocks.swapaxes(-4, -3).reshape(*batch, height, width, channels)


def tiling(height: int, width: int, patch_size: Sides) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return a patch's height and width, and how many patches an image is high and wide; or raise `ValueError`."""
    patch_height, patch_width = two_sides("patch_size", patch_size)
    if height % patch_height or width % patch_width:
        what = f"Patches of {patch_height} x {patch_width} pixels do not tile an image of {height} x {width}"
        hint = "Choose other patches, or crop or resize the image."
        raise ValueError(f"{what}; expected divisors of its height and width. {hint}")
    return (patch_height, patch_width), (height // patch_height, width // patch_width)


def two_sides(name: str, size) -> tuple[int, int]:
    """Return height and width as a pair of Python integers, of one side if both are equal."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool):
        size = (size, size)
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise TypeError(f"{name} is {size!r}; expected one side or (height, width), in pixels.")
    check_each(Positive, **{f"{name}[0]": size[0], f"{name}[1]": size[1]})
    return int(size[0]), int(size[1])
