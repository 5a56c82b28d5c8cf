"""The language model of plays is as good on the lines shown as recorded."""

import pytest

import plainformer as pf
from lab import language_models
from lab.shakespeare import run as shakespeare_run
from plainformer.models.stored import load_pretrained


def test_language_models_have_the_recorded_loss_on_the_lines_shown():
    recorded, (model, tokenizer) = pf.data.load_record("shakespeare"), load_pretrained("shakespeare")
    assert len(tokenizer) == shakespeare_run.VOCAB_SIZE
    assert model.config == language_models.decoder_config(shakespeare_run.SIZES["large"], len(tokenizer))
    found = language_models.nats_per_character(model, tokenizer.encode(recorded["real"]), len(recorded["real"]))
    assert found == pytest.approx(recorded["real loss"], abs=0.002)


def test_on_plays_the_small_model_is_level_with_the_best_count_and_the_large_one_ahead():
    plays = pf.data.load_record("shakespeare")
    count = min(loss for losses in plays["counted"].values() for loss in losses.values())
    ahead = {name: count - one["curve"][-1][1] for name, one in plays["sizes"].items()}
    assert abs(ahead["small"]) < 0.01 < 0.05 < ahead["large"]
