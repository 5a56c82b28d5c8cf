"""The encoder of things guesses as its card states."""

import numpy as np
import pytest

import plainformer as pf
from lab import things_lines
from lab.records import LAB
from lab.things_encoder import run as things_encoder_run
from plainformer.models.stored import load_pretrained


def rows_of(card: str) -> dict[str, list[str]]:
    """The rows of a card's table, by their first cells."""
    rows = [line.strip("| ").split(" | ") for line in card.splitlines() if line.startswith("| ")]
    return {name: [cell.strip(" |%") for cell in cells] for name, *cells in rows}


def test_things_encoder_guesses_as_its_card_states():
    rows = rows_of((LAB / "things_encoder" / "card.md").read_text(encoding="utf-8"))
    model, vocabulary = load_pretrained("things_encoder")
    assert model.config == things_encoder_run.ENCODER
    assert vocabulary.to_json() == things_lines.VOCABULARY.to_json()
    asked = things_lines.questions(pf.data.thing_splits().test, things_encoder_run.NUM_QUESTIONS)
    nats, is_right = things_encoder_run.surprises(model, asked)
    # The names are those of this Babel, whose versions differ a little.
    assert nats.mean() == pytest.approx(float(rows["encoder, seed 0"][0]), abs=0.05)
    assert 100 * is_right.mean() == pytest.approx(float(rows["encoder, seed 0"][1]), abs=2)
    of_seeds = [float(rows[f"encoder, seed {seed}"][0]) for seed in things_lines.SEEDS]
    votes, alone = (float(rows[name][0]) for name in ("the same with votes", "6-gram, the name alone"))
    assert abs(votes - np.mean(of_seeds)) < 2 * (max(of_seeds) - min(of_seeds))  # level, as the chapter says
    assert alone > max(of_seeds) + 1
