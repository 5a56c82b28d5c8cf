"""The decoder of letters has the loss that its card states."""

import re

import pytest

import plainformer as pf
from lab.decoder import run as decoder_run
from lab.records import LAB
from plainformer.models.stored import load_pretrained


def test_decoder_has_the_loss_that_its_card_states():
    card = (LAB / "decoder" / "card.md").read_text(encoding="utf-8")
    stated = float(re.search(r"(?:loss|has) (\d\.\d{3})", card)[1])
    model, vocabulary = load_pretrained("decoder")
    assert vocabulary.to_json() == decoder_run.VOCABULARY.to_json()
    assert model.config == decoder_run.DECODER
    validation = vocabulary.encode(pf.data.python_reference_splits()[1])
    loss = pf.training.corpus_loss(model, pf.data.consecutive_windows(validation, model.config.context_len))
    assert loss == pytest.approx(stated, abs=0.05)  # the text is that of this Python, whose minor versions differ
