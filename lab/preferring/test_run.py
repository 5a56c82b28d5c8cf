"""The listener's choices have the chances that the model of Bradley and Terry gives them."""

import numpy as np
import pytest

import plainformer as pf
from lab.growing import VOCABULARY
from lab.preferring import run as preferring_run, truth

RECORD = pf.data.load_record("preferring")
SECOND = RECORD["possible and true"]
UNTUNED, WAYS = SECOND["untuned"], SECOND["ways"]


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


def of_each_seed(way: str, what: str) -> np.ndarray:
    """A number of all runs of the second listener's teller, or of an opponent."""
    return np.array([run[what] for run in WAYS[way]])


@pytest.mark.parametrize(
    ("text", "is_broken"),
    [
        ("the box is up .", True),
        ("Anna takes the ball . where is ball ? hall .", True),
        ("Anna takes the ball . the lamp lamp", True),
        ("who has the ball ? nobody . Anna wears", False),  # the last sentence is cut off
        ("Anna is in the hall . Anna is in the hall .", False),  # impossible, but whole
    ],
)
def test_a_text_is_broken_if_no_story_has_one_of_its_sentences(text, is_broken):
    assert truth.broken(VOCABULARY.encode(text)) == is_broken


def test_chosen_by_its_loss_dpo_makes_the_teller_worse_with_each_seed():
    lowest = min(SECOND["tried"], key=lambda run: run["loss"])
    assert {(run["beta"], run["rate"]) for run in WAYS["by loss"]} == {(lowest["beta"], lowest["rate"])}
    assert of_each_seed("by loss", "possible").max() < UNTUNED["possible"] - 0.05


def test_preferred_texts_lose_too_and_the_others_more_with_each_seed():
    chosen, rejected = (of_each_seed("by loss", what) for what in ("chosen", "rejected"))
    assert max(chosen) < -2
    assert max(rejected - chosen) < -2


def test_most_texts_that_cannot_be_are_broken_after_dpo_of_the_lowest_loss():
    assert min(of_each_seed("by loss", "broken") / (1 - of_each_seed("by loss", "elsewhere"))) > 0.6


def test_the_ordinary_loss_of_preferred_texts_undoes_most_of_the_harm():
    alone, both = (of_each_seed(way, "possible") for way in ("by loss", "by loss, likelihood too"))
    assert UNTUNED["possible"] - both.mean() < (UNTUNED["possible"] - alone.mean()) / 2
    assert min(both - alone) > 0


def test_chosen_by_what_it_writes_dpo_is_ahead_of_the_same_work_on_stories():
    assert of_each_seed("by writing", "possible").min() > of_each_seed("more stories", "possible").max()
    assert of_each_seed("by writing", "elsewhere").min() > UNTUNED["elsewhere"]
    assert max(map(truth.wrong, WAYS["by writing"])) < 0.6 * truth.wrong(UNTUNED)
