"""The live figure of patches stands on the stored model's own numbers."""

import json

import jax.numpy as jnp
import numpy as np
import patches_figure
import pytest

import plainformer as pf
from plainformer.models.stored import load_pretrained


@pytest.fixture(scope="module")
def model():
    return load_pretrained("vision")[0]


@pytest.fixture(scope="module")
def stored():
    return json.loads(patches_figure.NUMBERS.read_text("utf-8"))


def test_patches_figure_has_what_the_stored_model_makes_of_the_digits(model, stored):
    made = patches_figure.patches_numbers(model)
    assert stored["grid"] == made["grid"] == [4, 4]
    for old, new in zip(stored["images"], made["images"], strict=True):
        for name in ("number", "label", "pixels"):
            assert old[name] == new[name]
        # Other machines add in another order, and what is stored is rounded.
        np.testing.assert_allclose(old["weights"], new["weights"], rtol=0, atol=2)
        np.testing.assert_allclose(old["rollout"], new["rollout"], rtol=0, atol=2)
        np.testing.assert_allclose(old["probabilities"], new["probabilities"], rtol=0, atol=100)


def test_patches_figure_variants_are_whole_and_with_each_patch_hidden(model, stored):
    image = pf.data.digits().test.images[stored["images"][0]["number"]]
    variants = patches_figure.with_each_patch_hidden(image, model)
    assert variants.shape == (17, 8, 8, 1)
    np.testing.assert_array_equal(variants[0], image)
    for patch in range(16):
        top, left = 2 * (patch // 4), 2 * (patch % 4)
        expected = jnp.asarray(image).at[top : top + 2, left : left + 2].set(0.0)
        np.testing.assert_array_equal(variants[1 + patch], expected)


def test_patches_figure_numbers_are_distributions(stored):
    for image in stored["images"]:
        assert np.shape(image["weights"]) == (17, 3, 4, 17)
        np.testing.assert_allclose(np.sum(image["weights"], axis=3), 1000, atol=9)
        np.testing.assert_allclose(np.sum(image["rollout"], axis=1), 1000, atol=9)
        np.testing.assert_allclose(np.sum(image["probabilities"], axis=1), 100_000, atol=5)
        assert np.max(image["pixels"]) <= 16


def test_patches_figure_has_misread_digits_and_such_as_a_single_patch_decides(stored):
    answers = [np.argmax(image["probabilities"], axis=1) for image in stored["images"]]
    labels = [image["label"] for image in stored["images"]]
    assert len(labels) == patches_figure.NUM_SHOWN
    assert any(answer[0] != label for answer, label in zip(answers, labels, strict=True))
    assert sum(len(set(answer)) > 1 for answer in answers) >= 4
    assert len(set(labels)) >= 6
