"""Images as tokens: cutting them into patches, and putting the patches back together (chapters 01 and 09)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Num

from plainformer.checks import check_axes, check_positive, checked

Sides = int | Sequence[int]


@checked
def image_to_patches(
    image: Num[Array, "*batch height width channels"], patch_size: Sides
) -> Num[Array, "*batch num_patches patch_features"]:
    r"""Cut an image into patches, and write each one as a row.

    Implements `eq-tokens-patches`; Dosovitskiy et al. (2021), section 3.1. Patches are in reading order, left to right
    and then down; so are the pixels of a patch, and each pixel's channels stay together.

    **Arguments** the image; `patch_size`, the side of a square patch, or its `(height, width)`, in pixels.

    **Returns** one row per patch, of `patch_height * patch_width * channels` features.

    **Raises** `ValueError` if the patches do not tile the image.
    """
    *batch, height, width, channels = image.shape
    (patch_height, patch_width), (grid_height, grid_width) = tiling(height, width, patch_size)
    blocks = image.reshape(*batch, grid_height, patch_height, grid_width, patch_width, channels)
    patches = blocks.swapaxes(-4, -3)
    return patches.reshape(*batch, grid_height * grid_width, patch_height * patch_width * channels)


@checked
def patches_to_image(
    patches: Num[Array, "*batch num_patches patch_features"], patch_size: Sides, *, height: int, width: int
) -> Num[Array, "*batch height width channels"]:
    r"""Put the patches back together: the inverse of `image_to_patches`.

    **Arguments** the patches; `patch_size`, as it was given to `image_to_patches`; the image's `height` and `width`, in
    pixels.

    **Raises** `ValueError` if the patches do not tile such an image.
    """
    check_positive(height=height, width=width)
    (patch_height, patch_width), (grid_height, grid_width) = tiling(height, width, patch_size)
    *batch, _, features = patches.shape
    hint = f"An image of {height} x {width} pixels takes {grid_height * grid_width} such patches."
    axes = {"*batch": None, "num_patches": grid_height * grid_width, "patch_features": None}
    check_axes("patches", patches, hint, **axes)
    channels, rest = divmod(features, patch_height * patch_width)
    if rest:
        raise ValueError(
            f"patches have {features} features; expected a multiple of {patch_height} * {patch_width} pixels."
        )
    blocks = patches.reshape(*batch, grid_height, grid_width, patch_height, patch_width, channels)
    return blocks.swapaxes(-4, -3).reshape(*batch, height, width, channels)


def tiling(height: int, width: int, patch_size: Sides) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return a patch's height and width, and how many patches an image is high and wide; or raise `ValueError`."""
    patch_height, patch_width = two_sides("patch_size", patch_size)
    if height % patch_height or width % patch_width:
        raise ValueError(
            f"Patches of {patch_height} x {patch_width} pixels do not tile an image of {height} x {width}; expected "
            "divisors of its height and width. Choose other patches, or crop or resize the image."
        )
    return (patch_height, patch_width), (height // patch_height, width // patch_width)


def two_sides(name: str, size) -> tuple[int, int]:
    """Return height and width as a pair of Python integers, of one side if both are equal."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool):
        size = (size, size)
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise TypeError(f"{name} is {size!r}; expected one side or (height, width), in pixels.")
    check_positive(**{f"{name}[0]": size[0], f"{name}[1]": size[1]})
    return int(size[0]), int(size[1])
