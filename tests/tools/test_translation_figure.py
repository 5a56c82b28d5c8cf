"""The live figure of cross-attention stands on the stored model's own numbers."""

import json

import numpy as np
import pytest
import translation_figure

import plainformer as pf
from plainformer.models.stored import load_pretrained

PARTS = pf.data.date_splits()


@pytest.fixture(scope="module")
def stored():
    return json.loads(translation_figure.NUMBERS.read_text("utf-8"))


def test_translation_figure_has_the_stored_models_weights_and_probabilities(stored):
    made = translation_figure.translation_numbers(*load_pretrained("seq2seq"))
    assert stored["heads"] == made["heads"]
    assert {date["text"]: date["language"] for date in stored["dates"]} == translation_figure.DATES
    for old, new in zip(stored["dates"], made["dates"], strict=True):
        assert (old["text"], old["written"]) == (new["text"], new["written"])
        # Other machines add in another order, and what is stored is rounded.
        np.testing.assert_allclose(old["weights"], new["weights"], rtol=0, atol=3)
        for one, other in zip(old["next"], new["next"], strict=True):
            assert one["letters"][0] == other["letters"][0]
            np.testing.assert_allclose(one["probabilities"], other["probabilities"], rtol=0, atol=2e-3)


def test_translation_figure_has_a_row_of_weights_for_every_character(stored):
    for date in stored["dates"]:
        weights = np.array(date["weights"])
        assert weights.shape == (len(stored["heads"]), len(date["written"]), len(date["text"]))
        np.testing.assert_allclose(weights.sum(axis=2) / 1000, 1, atol=0.5 * weights.shape[2] / 1000)
        assert date["written"].endswith(translation_figure.STOP)
        assert [step["letters"][0] for step in date["next"]] == list(date["written"])  # greedy search wrote it


def test_translation_figure_has_dates_that_the_model_has_not_seen(stored):
    held_out = [{pair.source: pair.target for pair in part} for part in PARTS[1:]]
    seen = {pair.source for pair in PARTS.training}
    assert not seen & set(translation_figure.DATES)
    right = [date["text"] for date in stored["dates"] if held_out[0].get(date["text"]) == date["written"][:-1]]
    assert right == [text for text, language in translation_figure.DATES.items() if "training" not in language]
    (wrong,) = (date for date in stored["dates"] if date["text"] in held_out[1])
    assert held_out[1][wrong["text"]] != wrong["written"][:-1]


def test_translation_figure_reads_the_digits_of_the_day_when_it_writes_them(stored):
    """In the mean of all heads, the first digit of the day is read most where it is written."""
    for date in stored["dates"][:7]:
        step = 8
        weights = np.mean(date["weights"], axis=0)[step]
        assert date["text"][int(np.argmax(weights))] == date["written"][step]
