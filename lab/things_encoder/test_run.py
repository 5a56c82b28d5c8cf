"""The encoder of things guesses as recorded."""

import numpy as np
import pytest

import plainformer as pf
from lab import things_lines
from lab.things_encoder import run as things_encoder_run
from plainformer.models.stored import load_pretrained


def test_things_encoder_guesses_as_recorded():
    rows = pf.data.load_record("things_encoder")["rows"]
    model, vocabulary = load_pretrained("things_encoder")
    assert model.config == things_encoder_run.ENCODER
    assert vocabulary.to_json() == things_lines.VOCABULARY.to_json()
    asked = things_lines.questions(pf.data.thing_splits().test, things_encoder_run.NUM_QUESTIONS)
    nats, is_right = things_encoder_run.surprises(model, asked)
    # The names are those of this Babel, whose versions differ a little.
    assert nats.mean() == pytest.approx(rows["encoder, seed 0"]["nats"], abs=0.05)
    assert is_right.mean() == pytest.approx(rows["encoder, seed 0"]["right"], abs=0.02)


def test_the_encoder_is_level_with_votes_and_far_ahead_of_the_name_alone():
    rows = pf.data.load_record("things_encoder")["rows"]
    of_seeds = [rows[f"encoder, seed {seed}"]["nats"] for seed in things_lines.SEEDS]
    votes, alone = (rows[name]["nats"] for name in ("the same with votes", "6-gram, the name alone"))
    assert abs(votes - np.mean(of_seeds)) < 2 * (max(of_seeds) - min(of_seeds))
    assert alone > max(of_seeds) + 1
