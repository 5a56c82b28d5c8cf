"""The models of Shakespeare: the record, its card, and what the stored one does."""

import json
from pathlib import Path

import language_models
import numpy as np
import pytest
import train_shakespeare

import plainformer as pf

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("shakespeare_losses")


@pytest.fixture(scope="module")
def stored():
    return pf.load_pretrained("shakespeare")


def test_the_card_says_what_was_recorded(recorded):
    assert train_shakespeare.card(recorded) == (MODELS / "shakespeare.md").read_text(encoding="utf-8")
    assert list(recorded["sizes"]) == list(train_shakespeare.SIZES)
    for name, one in recorded["sizes"].items():
        assert one["curve"][-1][0] == train_shakespeare.SIZES[name].num_steps


def test_the_largest_is_the_stored_one_and_below_every_count(recorded, stored):
    model, tokenizer = stored
    assert model.config == language_models.decoder_config(train_shakespeare.SIZES["large"], len(tokenizer))
    assert pf.count_parameters(model) == recorded["sizes"]["large"]["parameters"]
    assert len(tokenizer) == train_shakespeare.VOCAB_SIZE
    least = min(loss for losses in recorded["counted"].values() for loss in losses.values())
    losses = [one["curve"][-1][1] for one in recorded["sizes"].values()]
    assert losses == sorted(losses, reverse=True)
    assert recorded["stored loss"] < min(1.5, least)
    assert recorded["stored loss"] == pytest.approx(losses[-1], abs=0.001)  # what eight bits cost


def test_the_stored_model_has_the_recorded_loss_on_the_lines_shown(recorded, stored):
    model, tokenizer = stored
    shown = recorded["real"]
    found = language_models.nats_per_character(model, tokenizer.encode(shown), len(shown))
    assert found == pytest.approx(recorded["real loss"], abs=0.002)


def test_the_stored_model_writes_as_recorded(recorded, stored):
    prompt = stored[1].encode(train_shakespeare.PROMPT)
    text = pf.generate(stored[0], prompt, 12, temperature=0.0)
    assert recorded["written"]["greedy"].startswith(stored[1].decode(text.tokens))


def test_overlapping_windows_count_every_token_once_behind_half_a_window():
    length, half = language_models.LENGTH, language_models.LENGTH // 2
    for number in (3, length, length + 1, length + half, length + half + 1, 5 * half + 7, 6 * half + 1):
        inputs, targets, counts = map(np.asarray, language_models.overlapping_windows(list(range(number))))
        assert sorted(targets[counts].tolist()) == list(range(1, number))
        np.testing.assert_array_equal(inputs[counts] + 1, targets[counts])
        places = np.broadcast_to(np.arange(length), counts.shape)
        assert places[1:][counts[1:]].min(initial=length) >= half


def test_chapters_say_what_was_recorded(recorded):
    text = " ".join((MODELS.parent / "chapters" / "07_decoder.md").read_text(encoding="utf-8").split())
    least = min(loss for losses in recorded["counted"].values() for loss in losses.values())
    ahead = least - recorded["sizes"]["large"]["curve"][-1][1]
    assert f"is {ahead:.2f} nats ahead. " in text
    small = recorded["sizes"]["small"]["curve"][-1][1]
    assert least - 0.01 < small < least
    assert "even the small model is level with the best count" in text
    config = json.loads((MODELS / "shakespeare.json").read_text("utf-8"))
    assert (config["stack"]["d_model"], config["stack"]["num_layers"]) == (256, 4)
