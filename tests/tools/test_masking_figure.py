"""The live figure of masking stands on the stored model's own numbers."""

import json

import masking_figure
import numpy as np

import plainformer as pf
from plainformer.models.stored import load_pretrained


def stored():
    return json.loads(masking_figure.NUMBERS.read_text("utf-8"))["names"]


def test_masking_figure_has_the_stored_models_probabilities():
    model, _ = load_pretrained("encoder")
    assert {name["text"]: name["language"] for name in stored()} == masking_figure.NAMES
    for name in stored():
        both, left = masking_figure.guesses(model, name["text"])
        for number, place in enumerate(name["places"]):
            ids = masking_figure.VOCABULARY.encode(place["letters"])
            # Other machines add in another order, and what is stored is rounded to four decimals.
            np.testing.assert_allclose(place["both"], both[number, ids], rtol=0, atol=2e-3)
            np.testing.assert_allclose(place["left"], left[number, ids], rtol=0, atol=2e-3)
            for row in (both[number], left[number]):
                likeliest = np.argsort(-row)[:4]
                assert set(likeliest[likeliest >= masking_figure.MASKING["first_ordinary"]].tolist()) <= set(ids)


def test_masking_figure_has_the_right_letter_of_every_place():
    for name in stored():
        assert len(name["places"]) == len(name["text"])
        for letter, place in zip(name["text"], name["places"], strict=True):
            assert letter in place["letters"]
            assert len(set(place["letters"])) == len(place["letters"]) == len(place["both"]) == len(place["left"])
            for row in (place["both"], place["left"]):
                assert 0.3 < sum(row) < 1 + 1e-3


def test_masking_figure_hides_names_that_the_model_has_not_seen():
    splits = pf.data.name_splits()
    seen = {name.text for name in splits.training}
    held_out = {name.text for name in splits.test}
    assert set(masking_figure.NAMES) <= held_out - seen


def test_masking_figure_shows_what_both_sides_add():
    """At most places the right letter is likelier if the letters after it are seen."""
    gains = []
    for name in stored():
        for letter, place in zip(name["text"], name["places"], strict=True):
            at = place["letters"].index(letter)
            gains.append(np.log(place["both"][at] + 1e-4) - np.log(place["left"][at] + 1e-4))
    assert np.mean(gains) > 0.5
    assert np.mean(np.array(gains) > 0) > 0.6
