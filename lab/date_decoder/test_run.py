"""The decoder of dates answers as its card states."""

import re

import pytest

import plainformer as pf
from lab.date_decoder import run as date_decoder_run
from lab.records import LAB
from plainformer.models.stored import load_pretrained


def test_date_decoder_answers_as_its_card_states():
    model, vocabulary = load_pretrained("date_decoder")
    assert model.config == date_decoder_run.one_text_config(vocabulary)
    card = (LAB / "date_decoder" / "card.md").read_text(encoding="utf-8")
    stated = float(re.search(r"held-out languages \| (\S+)% ", card)[1])
    share = date_decoder_run.answers_right(model, vocabulary, pf.data.date_splits().held_out_language)
    assert 100 * share == pytest.approx(stated, abs=0.5)
