"""Dates are translated as recorded, and as well as the cards of the models say."""

import re

import numpy as np
import pytest

import plainformer as pf
from lab.records import LAB
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


def test_recorded_translations_are_as_good_as_the_cards_of_the_models_say():
    recorded, each = pf.data.load_record("translations"), []
    card = (LAB / "seq2seq" / "card.md").read_text(encoding="utf-8")
    for seed, name in enumerate(seq2seq_run.NAMES):
        stated = re.search(rf"\| {seed} \| `{name}.safetensors` \| (\S+)% \| (\S+)% \|", card).groups()
        parts = ("held_out_years", "held_out_language")
        found = [1 - len(recorded[name][part]) / recorded["sizes"][part] for part in parts]
        np.testing.assert_allclose([float(each) / 100 for each in stated], found, atol=1e-4)
        each.append(float(stated[0]))
    (mean,) = re.findall(r"held-out years (\d+\.\d\d)% in the mean", card)
    assert sum(each) / 3 == pytest.approx(float(mean), abs=0.006)
    assert float(mean) >= 99
