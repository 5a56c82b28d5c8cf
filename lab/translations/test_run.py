"""Dates are translated as recorded, and as well as the record of the models says."""

import numpy as np
import pytest

import plainformer as pf
from lab.seq2seq import run as seq2seq_run
from lab.translations import run as translations_run
from plainformer.models.stored import load_pretrained


@pytest.mark.parametrize(("name", "number"), [("seq2seq", 100), ("seq2seq_1", 20), ("seq2seq_2", 20)])
def test_dates_are_translated_as_recorded(name, number):
    pairs = pf.data.date_splits().held_out_language[:number]
    model, vocabulary = load_pretrained(name)
    assert model.config == seq2seq_run.seq2seq_config(vocabulary)
    mistakes = pf.data.load_record("translations")[name]["held_out_language"]
    found = translations_run.translated(model, vocabulary, pairs, batch_size=number)
    same = [text == mistakes.get(str(n), pair.target) for n, (text, pair) in enumerate(zip(found, pairs, strict=True))]
    assert sum(same) >= number - 1  # one may hang on the last digits of a logit


def test_recorded_translations_are_as_good_as_the_record_of_the_models_says():
    recorded, models = pf.data.load_record("translations"), pf.data.load_record("seq2seq")["models"]
    assert list(models) == seq2seq_run.NAMES
    for name, shares in models.items():
        for part, share in shares.items():
            assert 1 - len(recorded[name][part]) / recorded["sizes"][part] == pytest.approx(share, abs=1e-4)
    assert np.mean([shares["held_out_years"] for shares in models.values()]) >= 0.99
