"""Images of handwritten digits."""

import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

from plainformer.data.digits import digits


def test_digits_are_those_of_scikit_learn():
    splits = digits()
    assert [part.images.shape for part in splits] == [(1442, 8, 8, 1), (355, 8, 8, 1)]
    assert [part.labels.shape for part in splits] == [(1442,), (355,)]
    for images, labels in splits:
        assert (images.dtype, labels.dtype) == (jnp.float32, jnp.int32)
        assert (images.min(), images.max()) == (0, 1)
    everything = load_digits()
    expected = {(image.tobytes(), label) for image, label in zip(everything.images, everything.target, strict=True)}
    found = [
        (np.asarray(image[..., 0] * 16, np.float64).tobytes(), int(label))
        for part in splits
        for image, label in zip(np.asarray(part.images), np.asarray(part.labels), strict=True)
    ]
    # As many as there are, each once: so no image is in both parts.
    assert len(found) == len(set(found)) == 1797
    assert set(found) == expected


def test_digits_are_split_the_same_way_for_every_digit():
    training, test = (np.bincount(np.asarray(part.labels)) for part in digits())
    assert len(training) == len(test) == 10
    assert (test == (training + test) // 5).all()


def test_digits_are_split_by_the_images_alone(monkeypatch):
    everything = load_digits()
    order = np.random.default_rng(0).permutation(1797)
    held_out = {image.tobytes() for image in np.asarray(digits().test.images)}
    everything.images, everything.target = everything.images[order], everything.target[order]
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: everything)
    assert {image.tobytes() for image in np.asarray(digits().test.images)} == held_out
    # They are spread over the whole set, and with it over those who wrote them.
    everything.images, everything.target = everything.images[np.argsort(order)], everything.target[np.argsort(order)]
    places = [n for n, image in enumerate(everything.images) if np.float32(image[..., None] / 16).tobytes() in held_out]
    assert np.histogram(places, 5, (0, 1797))[0].min() > 50
