"""Exercise `cut_patches`: an image as rows, one per patch."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _in_one_go(image, tall, wide):
    """Rows of patches, rows of pixels, then columns of each, as they lie in memory."""
    height, width, channels = image.shape
    return image.reshape(height // tall, tall, width // wide, wide, channels)


def _tiles(image, tall, wide):
    """Five axes: which patch, down and right; then which pixel of it, down and right; then which channel."""
    return _in_one_go(image, tall, wide).transpose(0, 2, 1, 3, 4)


def _as_rows(tiles):
    """One row per patch, all that follows laid out."""
    return tiles.reshape(tiles.shape[0] * tiles.shape[1], -1)


def cut_patches(image, tall, wide, *, cut=_tiles, count=lambda tiles: tiles, within=lambda tiles: tiles, lay=_as_rows):
    """Return one row per patch, in reading order, each patch in reading order, too."""
    return lay(within(count(cut(image, tall, wide))))


def _windows(image, tall, wide):
    return np.lib.stride_tricks.sliding_window_view(image, (tall, wide), (0, 1)).transpose(0, 1, 3, 4, 2)


MISTAKES = [
    Mistake(
        "you reshape in one go, without a transpose: each row holds pixels that follow one another in memory, not a "
        "patch",
        "In memory a row of the image ends only at its right edge. How many patches does it run through?",
        cut=lambda image, tall, wide: _in_one_go(image, tall, wide).reshape(
            image.shape[0] // tall, image.shape[1] // wide, tall, wide, -1
        ),
    ),
    Mistake(
        "the patch's height and width are swapped",
        "Which of the two divides image.shape[0]?",
        cut=lambda image, tall, wide: _tiles(image, wide, tall),
    ),
    Mistake(
        "you take the first axis of the image for its width",
        "An image is (height, width, channels). Does its first index count down or to the right?",
        cut=lambda image, tall, wide: _tiles(image.transpose(1, 0, 2), tall, wide),
    ),
    Mistake(
        "your patches overlap: each begins one pixel after the one before",
        "In how many patches should every pixel be? By how much must the corner move on?",
        cut=_windows,
    ),
    Mistake(
        "you count patches down the columns first",
        "We read to the right and then down. Which patch comes second?",
        count=lambda tiles: tiles.swapaxes(0, 1),
    ),
    Mistake(
        "inside a patch you take pixels column by column",
        "A patch is read as the image is, to the right and then down. Which pixel comes second?",
        within=lambda tiles: tiles.swapaxes(2, 3),
    ),
    Mistake(
        "inside a patch the channels come first: all of channel 0, then all of channel 1",
        "The numbers of one pixel should stay together. Which axis varies fastest when an array is flattened?",
        within=lambda tiles: tiles.transpose(0, 1, 4, 2, 3),
    ),
    Mistake(
        "you do not flatten the patches: each is still a small image",
        "A token is a row of a matrix. How many axes has the result?",
        lay=[lambda tiles: tiles, lambda tiles: tiles.reshape(-1, *tiles.shape[2:])],
    ),
    Mistake(
        "your result has one column per patch",
        "Rows are tokens. Which axis should count the patches?",
        lay=lambda tiles: _as_rows(tiles).T,
    ),
]

_RNG = np.random.default_rng(2021)


def _case(name, shape, tall, wide, is_edge=False):
    return Case(name, {"image": _RNG.integers(1, 100, shape) / 4, "tall": tall, "wide": wide}, is_edge)


def _example(shape, tall, wide):
    return {"image": np.arange(np.prod(shape)).reshape(shape) + 0.0, "tall": tall, "wide": wide}


EXERCISE = Exercise(
    cut_patches,
    MISTAKES,
    cases=[
        _case("patches wider than tall", (6, 12, 5), 2, 3),
        _case("patches taller than wide", (8, 4, 3), 4, 2),
        _case("a grey image", (12, 6, 1), 3, 2),
        _case("patches of a single pixel", (2, 4, 3), 1, 1, is_edge=True),
        _case("an image that is one patch", (2, 3, 4), 2, 3, is_edge=True),
    ],
    examples=[
        _example((2, 4, 1), 2, 2),
        _example((2, 4, 1), 1, 2),
        _example((2, 2, 2), 1, 2),
        _example((2, 2, 1), 1, 1),
    ],
    result="(num_patches, tall * wide * channels)",
    tried_on="images such as {image}, patches of {tall} x {wide} pixels",
)
