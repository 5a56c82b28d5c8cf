"""The stored models: each is what its card says."""

import re
from pathlib import Path

import pytest
import train_models

import plainformer as pf

MODELS = Path(__file__).resolve().parent.parent / "models"


def test_models_are_small():
    assert sum(file.stat().st_size for file in MODELS.iterdir()) < 10_000_000


def test_decoder_has_the_loss_that_its_card_states():
    card = (MODELS / "decoder.md").read_text(encoding="utf-8")
    stated, of_five_gram = (float(number) for number in re.findall(r"(?:loss|has) (\d\.\d{3})", card))
    vocabulary = train_models.character_vocabulary()
    training, validation = (vocabulary.encode(text) for text in pf.python_reference_splits())
    model = pf.load_model(MODELS / "decoder.safetensors", pf.Decoder)
    assert model.config == train_models.DECODER
    loss = pf.mean_next_token_loss(model, pf.all_windows(validation, model.config.context_len))
    counted = pf.NgramModel(training, 5, model.config.vocab_size).loss(validation)
    # The text is that of this Python, whose minor versions differ a little.
    assert loss == pytest.approx(stated, abs=0.05)
    assert counted == pytest.approx(of_five_gram, abs=0.05)
    assert loss < counted
