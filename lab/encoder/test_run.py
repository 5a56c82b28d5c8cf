"""The encoder of names guesses hidden letters and finds slips as its card states."""

import re
from functools import partial

import pytest

import plainformer as pf
from lab import slips
from lab.encoder import run as encoder_run
from lab.records import LAB
from plainformer.models.stored import load_pretrained


def test_encoder_guesses_hidden_letters_as_its_card_states():
    card = (LAB / "encoder" / "card.md").read_text(encoding="utf-8")
    stated_loss = float(re.findall(r"loss\s(\d\.\d{3})\snats per selected", card)[-1])
    (stated_share,) = map(float, re.findall(r"(0\.\d{3}) of them", card))
    model, vocabulary = load_pretrained("encoder")
    assert vocabulary.to_json() == encoder_run.VOCABULARY.to_json()
    assert model.config == encoder_run.ENCODER
    loss, share = encoder_run.masked_results(model, pf.data.name_splits().test)
    # The names are those of this Babel, whose versions differ a little.
    assert loss == pytest.approx(stated_loss, abs=0.05)
    assert share == pytest.approx(stated_share, abs=0.02)


def test_the_encoder_finds_slips_as_its_card_states():
    card = (LAB / "encoder" / "card.md").read_text(encoding="utf-8")
    number, _, _, of_some, of_counting = re.findall(r"[\d,.]+(?=%| of them one)", card[card.index("**Slips.**") :])
    model, _ = load_pretrained("encoder")
    splits = pf.data.name_splits()
    wrong = encoder_run.one_slip_each(splits.test, splits.training)
    assert len(wrong) == int(number.replace(",", ""))
    assert all(len(line[0]) >= 5 and line[0][place].isalpha() for line, _, place in wrong)
    texts = [name.text for name in splits.training]
    found = slips.slips_found(partial(encoder_run.surprise_by_encoder, model), wrong[::6], texts)
    assert 100 * found == pytest.approx(float(of_some), abs=0.5)
    assert float(of_counting) > float(of_some) + 5
