"""Pictures of nine digits with a question about one of them."""

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.data.crossings import crossings
from plainformer.data.digits import Digits


@pytest.fixture(scope="module")
def shades():
    """Ten "digits" that can be told by hand: digit d is all of the shade (d + 1) / 16."""
    numbers = np.arange(10)
    return Digits(jnp.asarray(np.ones((10, 8, 8, 1), np.float32) * (numbers[:, None, None, None] + 1) / 16), numbers)


def cells_of(pictures):
    """The pictures' cells, `(n, 4, 4, 8, 8)`, cut by hand."""
    images = np.asarray(pictures.images)[..., 0]
    return np.stack([[[p[8 * r : 8 * r + 8, 8 * c : 8 * c + 8] for c in range(4)] for r in range(4)] for p in images])


def test_crossings_ask_for_the_digit_where_row_and_column_cross(shades):
    pictures = crossings(shades, 40)
    assert pictures.images.shape == (40, 32, 32, 1)
    assert pictures.images.dtype == jnp.float32
    assert [each.dtype for each in pictures[1:]] == [jnp.int32] * 3
    cells = cells_of(pictures)
    for picture, label, row, column in zip(cells, *map(np.asarray, pictures[1:]), strict=True):
        assert (picture[1 + row, 1 + column] == (label + 1) / 16).all()


def test_crossings_have_one_bar_above_and_one_to_the_left_and_digits_else(shades):
    pictures = crossings(shades, 40)
    upright = np.zeros((8, 8))
    upright[3:, 3:5] = 1
    for picture, row, column in zip(cells_of(pictures), pictures.rows.tolist(), pictures.columns.tolist(), strict=True):
        margins = np.zeros((4, 4, 8, 8))
        margins[0, 1 + column], margins[1 + row, 0] = upright, upright.T
        np.testing.assert_array_equal(picture[0], margins[0])
        np.testing.assert_array_equal(picture[:, 0], margins[:, 0])
        nine = picture[1:, 1:]
        np.testing.assert_array_equal(nine, np.broadcast_to(nine[:, :, :1, :1], nine.shape))
        assert (nine > 0).all()


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ("off the diagonal", [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]),
        ("on the diagonal", [(0, 0), (1, 1), (2, 2)]),
        ("anywhere", [(row, column) for row in range(3) for column in range(3)]),
    ],
)
def test_crossings_ask_only_where_they_may_and_equally_often(shades, asked, places):
    pictures = crossings(shades, 3600, seed=1, asked=asked)
    found, counts = np.unique(np.stack([pictures.rows, pictures.columns], axis=1), axis=0, return_counts=True)
    assert [tuple(place) for place in found.tolist()] == places
    # Off by less than four standard deviations of a binomial count.
    mean = 3600 / len(places)
    assert np.abs(counts - mean).max() < 4 * np.sqrt(mean)


def test_crossings_are_the_same_for_the_same_seed_and_differ_else(shades):
    first, again, other = crossings(shades, 7), crossings(shades, 7), crossings(shades, 7, seed=1)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert (first.images != other.images).any()


def test_crossings_refuse_other_images(unchecked, shades):
    with pytest.raises(ValueError, match=r"^digits\.images have the shape \(10, 4, 8"):
        crossings(shades._replace(images=shades.images[:, :4]), 3)
    with pytest.raises(ValueError, match=r"^digits has 10 images and 4 labels"):
        crossings(shades._replace(labels=shades.labels[:4]), 3)
    with pytest.raises(TypeError, match=r"^digits is of type tuple"):
        crossings(tuple(shades), 3)
    with pytest.raises(ValueError, match=r"^num_images is 0"):
        crossings(shades, 0)
    with pytest.raises(ValueError, match=r"^asked is 'diagonal'"):
        crossings(shades, 3, asked="diagonal")
