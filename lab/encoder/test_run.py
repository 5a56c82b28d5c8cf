"""The encoder of names guesses hidden letters and finds slips as recorded."""

from functools import partial

import pytest

import plainformer as pf
from lab import slips
from lab.encoder import run as encoder_run
from plainformer.models.stored import load_pretrained


def test_encoder_guesses_hidden_letters_as_recorded():
    recorded = pf.data.load_record("encoder")
    model, vocabulary = load_pretrained("encoder")
    assert vocabulary.to_json() == encoder_run.VOCABULARY.to_json()
    assert model.config == encoder_run.ENCODER
    loss, share = encoder_run.masked_results(model, pf.data.name_splits().test)
    # The names are those of this Babel, whose versions differ a little.
    assert loss == pytest.approx(recorded["loss"], abs=0.05)
    assert share == pytest.approx(recorded["right"], abs=0.02)


def test_counting_finds_more_slips_than_the_encoder():
    recorded = pf.data.load_record("encoder")["slips"]
    assert recorded["counted in some"] > recorded["found in some"] + 0.05


def test_the_encoder_finds_slips_as_recorded():
    recorded = pf.data.load_record("encoder")["slips"]
    model, _ = load_pretrained("encoder")
    splits = pf.data.name_splits()
    wrong = encoder_run.one_slip_each(splits.test, splits.training)
    assert len(wrong) == recorded["names"]
    assert all(len(line[0]) >= 5 and line[0][place].isalpha() for line, _, place in wrong)
    texts = [name.text for name in splits.training]
    found = slips.slips_found(partial(encoder_run.surprise_by_encoder, model), wrong[::6], texts)
    assert found == pytest.approx(recorded["found in some"], abs=0.005)
