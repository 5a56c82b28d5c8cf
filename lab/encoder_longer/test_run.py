"""The longer training differs in its steps alone, losses are those of the records, and compare as chapters say."""

import dataclasses

import numpy as np
import pytest

import plainformer as pf
from lab.encoder_longer import run as longer
from lab.things_decoder.next_letter_by_counting import NAME
from lab.things_lines import SEEDS, TRAINING


def test_the_longer_training_is_that_of_the_stored_encoder_but_for_its_steps():
    as_there = {"num_steps": TRAINING.num_steps, "evaluate_every": TRAINING.evaluate_every}
    assert dataclasses.replace(longer.LONGER, **as_there) == TRAINING
    assert longer.LONGER.num_steps == 2 * TRAINING.num_steps
    every = longer.LONGER.evaluate_every
    for each in pf.data.load_record("encoder_longer")["things"]:
        steps, nats = zip(*each["curve"], strict=True)
        assert steps == tuple(range(every, longer.LONGER.num_steps + 1, every))
        assert nats[-1] == each["nats"]


def test_the_stored_encoder_and_decoder_of_things_have_the_losses_that_were_recorded_of_them():
    encoder, decoder = pf.load_pretrained("things_encoder")[0], pf.load_pretrained("things_decoder")[0]
    found = pf.data.load_record("things_encoder")["rows"]["encoder, seed 0"]["nats"]
    # The names are those of this Babel, whose versions differ a little.
    assert longer.nats_of_things(encoder) == pytest.approx(found, abs=0.05)
    found = pf.data.load_record("things_decoder")["names"]["decoder, seed 0"][NAME]
    assert longer.nats_of_decoder(decoder) == pytest.approx(found, abs=0.05)


def test_the_stored_encoder_of_names_has_the_loss_that_was_recorded_of_it():
    found = np.mean(pf.data.load_record("holes")["names"]["encoder"])
    assert longer.nats_of_names(pf.load_pretrained("encoder")[0]) == pytest.approx(found, abs=0.05)


def test_after_twice_the_steps_each_seed_is_ahead_of_the_votes():
    rows = pf.data.load_record("things_encoder")["rows"]
    nats = longer.nats_of(pf.data.load_record("encoder_longer"))
    of_shorter = [rows[f"encoder, seed {seed}"]["nats"] for seed in SEEDS]
    assert max(nats) < rows["the same with votes"]["nats"] - 2 * max(np.ptp(nats), np.ptp(of_shorter))


def test_half_the_rate_and_twice_the_rate_are_worse_for_both_encoders_after_a_short_training():
    for kind in ("things", "names"):
        half, taken, twice = pf.data.load_record("encoder_longer")["rates"][kind].values()
        assert taken < min(half, twice), kind


def test_twice_the_rate_is_better_for_the_decoder_of_things_after_a_short_training():
    half, taken, twice = pf.data.load_record("encoder_longer")["rates"]["decoder"].values()
    assert twice < taken < half
