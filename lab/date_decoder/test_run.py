"""The decoder of dates answers as recorded."""

import pytest

import plainformer as pf
from lab.date_decoder import run as date_decoder_run
from plainformer.models.stored import load_pretrained


def test_date_decoder_answers_as_recorded():
    model, vocabulary = load_pretrained("date_decoder")
    assert model.config == date_decoder_run.one_text_config(vocabulary)
    recorded = pf.data.load_record("date_decoder")["right"]["held_out_language"]
    share = date_decoder_run.answers_right(model, vocabulary, pf.data.date_splits().held_out_language)
    assert share == pytest.approx(recorded["stored"], abs=0.005)
