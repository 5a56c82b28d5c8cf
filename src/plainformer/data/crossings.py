"""Pictures of nine digits with a question about one of them, which two bars point to."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from plainformer.checks import Natural, Positive, checked
from plainformer.data.digits import Digits

Asked = Literal["off the diagonal", "on the diagonal", "anywhere"]
SIDE, CELL = 3, 8  # three digits by three, each in a cell of 8 x 8 pixels


class Crossings(NamedTuple):
    """Pictures, `images`; of each the digit asked for, `labels`; and its place among the nine, `rows` and `columns`."""

    images: Float[Array, "n 32 32 1"]
    labels: Int[Array, " n"]
    rows: Int[Array, " n"]
    columns: Int[Array, " n"]


@checked
def crossings(digits: Digits, num_images: Positive, seed: Natural = 0, asked: Asked = "anywhere") -> Crossings:
    """Draw pictures of nine digits, of which one is asked for: the one where the row and the column of two bars cross.

    A picture has 4 x 4 cells of 8 x 8 pixels. In the three rows and columns to the lower right stand nine of the
    digits, drawn at random with replacement. A bar in the uppermost cell of a column marks this column, another in the
    leftmost cell of a row marks this row; all else is paper. Each of the nine places that `asked` allows is asked for
    equally often, on average: the three whose row and column have the same number, the six others, or all nine.

    Raises:
        TypeError: if they are no `Digits`.
        ValueError: if these are not of 8 x 8 pixels with one channel, or there is not one label for each of at least
            one.

    Example:
        With these bars, the digit in the lower right corner would be the one of row 2 and column 2.

        >>> pictures = pf.data.crossings(pf.data.digits().training, num_images=5, asked="on the diagonal")
        >>> pictures.images.shape, bool((pictures.rows == pictures.columns).all())
        ((5, 32, 32, 1), True)
    """
    if not isinstance(digits, Digits):
        raise TypeError(f"digits is of type {type(digits).__name__}; expected Digits, such as pf.data.digits().test.")
    images, labels = np.asarray(digits.images), np.asarray(digits.labels)
    if images.shape[1:] != (CELL, CELL, 1):
        raise ValueError(f"digits.images have the shape {images.shape}; expected (n, {CELL}, {CELL}, 1).")
    if not len(images) == len(labels) > 0:
        raise ValueError(
            f"digits has {len(images)} images and {len(labels)} labels; expected as many, and at least one."
        )
    random, each = np.random.default_rng(seed), np.arange(num_images)
    drawn = random.integers(len(labels), size=(num_images, SIDE, SIDE))
    rows = random.integers(SIDE, size=num_images)
    first, last = {"on the diagonal": (0, 0), "off the diagonal": (1, SIDE - 1), "anywhere": (0, SIDE - 1)}[asked]
    columns = (rows + random.integers(first, last + 1, size=num_images)) % SIDE
    cells = np.zeros((num_images, SIDE + 1, SIDE + 1, CELL, CELL), np.float32)
    cells[:, 1:, 1:] = images[drawn, :, :, 0]
    cells[each, 0, 1 + columns, 3:8, 3:5] = 1
    cells[each, 1 + rows, 0, 3:5, 3:8] = 1
    side = (SIDE + 1) * CELL
    pictures = cells.swapaxes(2, 3).reshape(num_images, side, side, 1)
    found = (pictures, labels[drawn[each, rows, columns]], rows, columns)
    return Crossings(jnp.asarray(found[0]), *(jnp.asarray(numbers, jnp.int32) for numbers in found[1:]))
