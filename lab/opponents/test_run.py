"""Opponents that are fitted in seconds reach what was recorded."""

import numpy as np
import pytest

import plainformer as pf
from lab.opponents import run as opponents
from lab.opponents.stories import belonging


def recorded() -> dict:
    return pf.data.load_record("opponents")


def test_what_takes_seconds_reaches_what_was_recorded():
    assert opponents.copying() == recorded()["copying"]
    learned, judged = opponents.parts("all")
    shown = opponents.choices(60, opponents.NUM_SHOWN, 0)
    filled = opponents.near(learned, judged[:60], shown, *recorded()["patches"]["setting"])
    error = opponents.error(filled, judged[:60], shown)
    assert error == pytest.approx(recorded()["patches"]["error"], rel=0.15)  # 60 digits of 355


def test_features_of_a_story_name_what_belongs_together():
    found = belonging("Anna is in the hall . it is wet . Anna goes to the cellar . where is Anna ? cellar .")
    assert "P0 is in the R0 > P0 goes to the R1" in found
    assert "P0 goes to the R0 > where is P0 ? R0" in found
    wrong = belonging("Anna is in the hall . it is wet . Anna goes to the cellar . where is Anna ? hall .")
    assert "P0 goes to the R0 > where is P0 ? R1" in wrong


def test_counting_told_what_belongs_together_is_far_ahead_of_the_encoder_with_2_000_labels():
    tuned = pf.data.load_record("story_labels")["accuracy"]["pre-trained"]["2000"]["accuracy"]
    assert min(recorded()["stories"]) > max(tuned) + 10


def test_the_decoder_of_stories_is_level_without_labels():
    seeds = [each["by doubt"] for each in pf.data.load_record("story_gru")["told and doubted"]["decoder"]]
    assert abs(np.mean(recorded()["stories"]) - np.mean(seeds)) < np.ptp(seeds)


def test_regression_on_similar_digits_is_ahead_of_the_autoencoder_with_each_seed():
    ours = pf.data.load_record("filling")["at their best"]["masked autoencoder"]["errors, twice the steps"]
    assert recorded()["patches"]["error"] < 0.98 * min(ours)


def test_without_similar_digits_regression_is_far_behind_the_autoencoder():
    best = pf.data.load_record("filling")["at their best"]
    assert best["regression"]["error"] > 1.4 * max(best["masked autoencoder"]["errors, twice the steps"])
