"""The mistakes in cutting patches and in putting a class token before them that the exercises know by name."""

import numpy as np

from plainformer.exercises.exercise import Mistake


def tiles(image, tall, wide):
    """Five axes: which patch, down and right; then which pixel of it, down and right; then which channel."""
    return in_one_go(image, tall, wide).transpose(0, 2, 1, 3, 4)


def as_rows(tiles):
    """One row per patch, all that follows laid out."""
    return tiles.reshape(tiles.shape[0] * tiles.shape[1], -1)


def in_one_go(image, tall, wide):
    """Rows of patches, rows of pixels, then columns of each, as they lie in memory."""
    height, width, channels = image.shape
    return image.reshape(height // tall, tall, width // wide, wide, channels)


def put_first(patches, class_vector):
    """The class token in front of the patches of every image."""
    first = np.broadcast_to(class_vector, (len(patches), 1, len(class_vector)))
    return np.concatenate([first, patches], axis=1)


def add_in_order(rows, table):
    """Row n of the table to row n of every image."""
    return rows + table


def _put_last(patches, class_vector):
    return np.concatenate([patches, put_first(patches, class_vector)[:, :1]], axis=1)


def _windows(image, tall, wide):
    return np.lib.stride_tricks.sliding_window_view(image, (tall, wide), (0, 1)).transpose(0, 1, 3, 4, 2)


CUT_PATCHES = [
    Mistake(
        "cut",
        "you reshape in one go, without a transpose: each row holds pixels that follow one another in memory, not a "
        "patch",
        "In memory a row of the image ends only at its right edge. How many patches does it run through?",
        lambda image, tall, wide: in_one_go(image, tall, wide).reshape(
            image.shape[0] // tall, image.shape[1] // wide, tall, wide, -1
        ),
    ),
    Mistake(
        "cut",
        "the patch's height and width are swapped",
        "Which of the two divides image.shape[0]?",
        lambda image, tall, wide: tiles(image, wide, tall),
    ),
    Mistake(
        "cut",
        "you take the first axis of the image for its width",
        "An image is (height, width, channels). Does its first index count down or to the right?",
        lambda image, tall, wide: tiles(image.transpose(1, 0, 2), tall, wide),
    ),
    Mistake(
        "cut",
        "your patches overlap: each begins one pixel after the one before",
        "In how many patches should every pixel be? By how much must the corner move on?",
        _windows,
    ),
    Mistake(
        "count",
        "you count patches down the columns first",
        "We read to the right and then down. Which patch comes second?",
        lambda tiles: tiles.swapaxes(0, 1),
    ),
    Mistake(
        "within",
        "inside a patch you take pixels column by column",
        "A patch is read as the image is, to the right and then down. Which pixel comes second?",
        lambda tiles: tiles.swapaxes(2, 3),
    ),
    Mistake(
        "within",
        "inside a patch the channels come first: all of channel 0, then all of channel 1",
        "The numbers of one pixel should stay together. Which axis varies fastest when an array is flattened?",
        lambda tiles: tiles.transpose(0, 1, 4, 2, 3),
    ),
    Mistake(
        "lay",
        "you do not flatten the patches: each is still a small image",
        "A token is a row of a matrix. How many axes has the result?",
        lambda tiles: tiles,
        lambda tiles: tiles.reshape(-1, *tiles.shape[2:]),
    ),
    Mistake(
        "lay",
        "your result has one column per patch",
        "Rows are tokens. Which axis should count the patches?",
        lambda tiles: as_rows(tiles).T,
    ),
]
CLASS_TOKEN = [
    Mistake(
        "put",
        "the class token stands at the end",
        "The head will read row 0. Whose row is that in your result?",
        _put_last,
    ),
    Mistake(
        "put",
        "only the first image has the class token; the others have a row of zeros in its place",
        "Every image is judged by its own class token. How do you repeat one vector for all of them?",
        lambda patches, class_vector: (
            put_first(patches, class_vector)
            * np.where(np.arange(1 + patches.shape[1]) == 0, np.eye(len(patches))[:, :1], 1)[:, :, None]
        ),
    ),
    Mistake(
        "put",
        "the class token takes the place of the first patch, which is lost",
        "How many rows should an image have, if the patches all stay?",
        {
            "put": lambda patches, class_vector: put_first(patches[:, 1:], class_vector),
            "add": lambda rows, table: rows + table[: rows.shape[1]],
        },
    ),
    Mistake(
        "put",
        "you add the class vector to every patch, where it should be a row of its own",
        "How many rows should an image have? Can a sum of two vectors be one more token?",
        {
            "put": lambda patches, class_vector: patches + class_vector,
            "add": lambda rows, table: rows + table[1:],
        },
        {
            "put": lambda patches, class_vector: patches + class_vector,
            "add": lambda rows, table: rows + table[:-1],
        },
    ),
    Mistake(
        "add",
        "the class token gets no position: you add positions before you put it in front",
        "The table has a row for every row of an image. Which one is left over?",
        lambda rows, table: rows + np.where(np.arange(len(table))[:, None] > 0, table, 0),
        lambda rows, table: rows + np.where(np.arange(len(table))[:, None] > 0, np.roll(table, 1, axis=0), 0),
    ),
    Mistake(
        "add",
        "positions are off by one: the class token has the table's last row, and each patch that of its neighbour",
        "Row n of an image should get row n of the table. Which row is the class token's?",
        lambda rows, table: rows + np.roll(table, 1, axis=0),
    ),
    Mistake(
        "add",
        "there are no positions: you only put the class token in front",
        "What does table hold, and to what is it added?",
        lambda rows, table: rows,
    ),
    Mistake(
        "add",
        "you give one position to each image, the same for all its rows",
        "A position says where in the image a patch lies. Along which axis does it change?",
        lambda rows, table: rows + table[: len(rows), None],
    ),
    Mistake(
        "add",
        "you add positions twice",
        "Does a row that has been given its position need another?",
        lambda rows, table: rows + 2 * table,
    ),
]
