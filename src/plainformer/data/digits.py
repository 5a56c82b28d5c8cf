"""Images of handwritten digits."""

import zlib
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Digits(NamedTuple):
    """Images of digits, `images`, and which digit each shows, `labels`."""

    images: Float[Array, "n height width channels"]
    labels: Int[Array, " n"]


class DigitSplits(NamedTuple):
    """Two sets of `Digits`: for `training`, and for the `test`."""

    training: Digits
    test: Digits


def digits() -> DigitSplits:
    """Return the 1,797 handwritten digits that ship with scikit-learn: 1,442 for training, 355 for the test.

    They are the test part of the UCI set Optical Recognition of Handwritten Digits (Alpaydin and Kaynak, 1998), by 13
    writers. Which writer an image is by is not recorded, so writers cannot be held out: the same hands are in training
    and test, and an accuracy says nothing about the hand of a stranger. Of each digit, a fifth is held out, rounded
    down, chosen by a checksum of the image: always the same one, and no image is in both parts. Images have 8 x 8
    pixels of one channel, 0 for paper to 1 for ink, and are in scikit-learn's order.
    """
    from sklearn.datasets import load_digits

    everything = load_digits()
    sums = np.array([zlib.crc32(image.astype(np.uint8).tobytes()) for image in everything.images])
    is_test = np.zeros(len(sums), bool)
    for digit in range(10):
        places = np.flatnonzero(everything.target == digit)
        is_test[places[np.argsort(sums[places], kind="stable")][: len(places) // 5]] = True
    images = jnp.asarray(everything.images[..., None] / 16, jnp.float32)
    labels = jnp.asarray(everything.target, jnp.int32)
    return DigitSplits(*(Digits(images[part], labels[part]) for part in (~is_test, is_test)))
