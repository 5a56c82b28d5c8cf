"""The decoder of letters has the loss that was recorded."""

import pytest

import plainformer as pf
from lab.decoder import run as decoder_run
from plainformer.models.stored import load_pretrained


def test_decoder_has_the_loss_that_was_recorded():
    model, vocabulary = load_pretrained("decoder")
    assert vocabulary.to_json() == decoder_run.VOCABULARY.to_json()
    assert model.config == decoder_run.DECODER
    validation = vocabulary.encode(pf.data.python_reference_splits()[1])
    loss = pf.training.corpus_loss(model, pf.data.consecutive_windows(validation, model.config.context_len))
    # The text is that of this Python, whose minor versions differ.
    assert loss == pytest.approx(pf.data.load_record("decoder")["loss"], abs=0.05)
