"""The listener's choices have the chances that the model of Bradley and Terry gives them."""

import numpy as np
import pytest

import plainformer as pf
from lab.preferring import run as preferring_run

RECORD = pf.data.load_record("preferring")


def test_a_listener_prefers_as_bradley_and_terry_say():
    one, other = np.array([3.0, 0.0]), np.array([1.0, 0.0])
    np.testing.assert_allclose(preferring_run.share_of_first(one, other), [1 / (1 + np.exp(-2)), 0.5])


def test_with_a_third_of_the_rate_a_price_of_a_tenth_does_little_harm():
    untuned, (lower, taken) = RECORD["best of"]["1"], (RECORD["rates"][rate] for rate in ("0.0001", "0.0003"))
    assert taken["possible"] < 0.7 < untuned["possible"] - 0.05 < lower["possible"]


def test_five_times_the_steps_lead_five_times_as_far_as_the_best_model():
    ways = RECORD["longer"]["1"]["leash"] / RECORD["frontier"]["1"]["leash"]
    assert ways == pytest.approx(5, abs=0.5)


def test_other_choices_surprise_more_than_at_the_start_after_five_times_the_steps():
    assert RECORD["longer"]["1"]["loss"] > np.log(2)


def test_other_choices_surprise_more_than_at_the_start_at_a_price_of_3_with_each_seed():
    assert min(run["loss"] for run in RECORD["betas"]["3"]) > np.log(2)


def test_other_choices_surprise_no_more_at_a_price_of_a_hundredth_than_at_1():
    low, high = (np.mean([run["loss"] for run in RECORD["betas"][price]]) for price in ("0.01", "1"))
    assert low <= high
