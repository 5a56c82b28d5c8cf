"""The digits to begin with in the live figure of patches are those of the data, chosen by the stored model."""

import json

import jax
import numpy as np
import patches_figure
import pytest

import plainformer as pf
from plainformer.models.stored import load_pretrained


@pytest.fixture(scope="module")
def stored():
    return json.loads(patches_figure.NUMBERS.read_text("utf-8"))["images"]


def test_patches_figure_has_digits_of_the_test_set(stored):
    test = pf.data.digits().test
    assert len(stored) == patches_figure.NUM_SHOWN
    for image in stored:
        assert image["label"] == test.labels[image["number"]]
        np.testing.assert_array_equal(image["pixels"], 16 * test.images[image["number"], :, :, 0])


def test_patches_figure_has_the_misread_digits_and_such_as_are_in_doubt(stored):
    model, test = load_pretrained("vision")[0], pf.data.digits().test
    assert patches_figure.digits_shown(model)["images"] == stored
    numbers = np.array([image["number"] for image in stored])
    probabilities = np.asarray(jax.nn.softmax(model(2 * test.images[numbers])))
    is_wrong = probabilities.argmax(axis=1) != np.array([image["label"] for image in stored])
    assert is_wrong.tolist() == [True] * 3 + [False] * 5
    sure = probabilities.max(axis=1)[3:]
    assert (np.diff(sure) > 0).all()
    assert len({image["label"] for image in stored}) == 7  # all but two fives differ
