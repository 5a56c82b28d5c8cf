"""Exercise `class_token`: a class token before the patches of each image, then positions."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _put_first(patches, class_vector):
    """The class token in front of the patches of every image."""
    first = np.broadcast_to(class_vector, (len(patches), 1, len(class_vector)))
    return np.concatenate([first, patches], axis=1)


def class_token(patches, class_vector, table, *, put=_put_first, add=lambda rows, table: rows + table):
    """Return the rows of every image, row n of the table added to row n of each."""
    return add(put(patches, class_vector), table)


def _put_last(patches, class_vector):
    return np.concatenate([patches, _put_first(patches, class_vector)[:, :1]], axis=1)


MISTAKES = [
    Mistake(
        "the class token stands at the end",
        "The head will read row 0. Whose row is that in your result?",
        put=_put_last,
    ),
    Mistake(
        "only the first image has the class token; the others have a row of zeros in its place",
        "Every image is judged by its own class token. How do you repeat one vector for all of them?",
        put=lambda patches, class_vector: (
            _put_first(patches, class_vector)
            * np.where(np.arange(1 + patches.shape[1]) == 0, np.eye(len(patches))[:, :1], 1)[:, :, None]
        ),
    ),
    Mistake(
        "the class token takes the place of the first patch, which is lost",
        "How many rows should an image have, if the patches all stay?",
        put=lambda patches, class_vector: _put_first(patches[:, 1:], class_vector),
        add=lambda rows, table: rows + table[: rows.shape[1]],
    ),
    Mistake(
        "you add the class vector to every patch, where it should be a row of its own",
        "How many rows should an image have? Can a sum of two vectors be one more token?",
        put=lambda patches, class_vector: patches + class_vector,
        add=[lambda rows, table: rows + table[1:], lambda rows, table: rows + table[:-1]],
    ),
    Mistake(
        "the class token gets no position: you add positions before you put it in front",
        "The table has a row for every row of an image. Which one is left over?",
        add=[
            lambda rows, table: rows + np.where(np.arange(len(table))[:, None] > 0, table, 0),
            lambda rows, table: rows + np.where(np.arange(len(table))[:, None] > 0, np.roll(table, 1, axis=0), 0),
        ],
    ),
    Mistake(
        "positions are off by one: the class token has the table's last row, and each patch that of its neighbour",
        "Row n of an image should get row n of the table. Which row is the class token's?",
        add=lambda rows, table: rows + np.roll(table, 1, axis=0),
    ),
    Mistake(
        "there are no positions: you only put the class token in front",
        "What does table hold, and to what is it added?",
        add=lambda rows, table: rows,
    ),
    Mistake(
        "you give one position to each image, the same for all its rows",
        "A position says where in the image a patch lies. Along which axis does it change?",
        add=lambda rows, table: rows + table[: len(rows), None],
    ),
    Mistake(
        "you add positions twice",
        "Does a row that has been given its position need another?",
        add=lambda rows, table: rows + 2 * table,
    ),
]

_RNG = np.random.default_rng(2020)


def _case(name, num_images, num_patches, d_model, is_edge=False):
    table = (num_patches + 1, d_model)
    inputs = draw(_RNG, 2, patches=(num_images, num_patches, d_model), class_vector=(d_model,), table=table)
    return Case(name, inputs, is_edge)


EXERCISE = Exercise(
    class_token,
    MISTAKES,
    cases=[
        _case("three images", 3, 5, 4),
        _case("more images than patches", 4, 2, 6),
        _case("a single image", 1, 4, 3, is_edge=True),
        _case("images of one patch", 3, 1, 4, is_edge=True),
    ],
    examples=[
        {
            "patches": np.array([[[1.0, 2], [3, 4]], [[5, 6], [7, 8]]]),
            "class_vector": np.array([0.25, 0.5]),
            "table": np.array([[10.0, 10], [20, 20], [30, 30]]),
        }
    ],
    result="(num_images, 1 + num_patches, d_model)",
    tried_on="patches {patches}, a table {table}",
)
