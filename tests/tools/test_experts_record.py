"""The recorded trainings of chapter 20's experts: the card, their sizes, and what their choice tells."""

import jax
import numpy as np
import pytest
import train_experts
from book import ROOT

import plainformer as pf

RECORDED = pf.data.load_record("experts")


def test_card_says_what_was_recorded():
    assert train_experts.card(RECORDED) == (ROOT / "models" / "experts.md").read_text(encoding="utf-8")


def test_recorded_sizes_are_those_of_the_models():
    runs = {name: train_experts.arm(RECORDED["runs"]["arms"], name)[0] for name in train_experts.ARMS}
    for name, run in runs.items():
        model = jax.eval_shape(lambda name=name, run=run: train_experts.make(train_experts.Run(name, run["rate"]), 40))
        assert pf.count_parameters(model) == run["parameters"]
        assert pf.models.active_parameters(model) == run["at work"]
    routers = train_experts.NUM_LAYERS * 32 * train_experts.NUM_EXPERTS
    assert runs["experts"]["at work"] - routers == runs["equal work"]["parameters"]
    assert runs["experts"]["parameters"] - routers == runs["equal size"]["parameters"]


def test_the_rates_of_the_arms_are_the_best_that_were_tried():
    for name in train_experts.ARMS:
        tried = train_experts.arm(RECORDED["runs"]["rates"], name)
        assert sorted(run["rate"] for run in tried) == list(train_experts.RATES)
        best = min(tried, key=lambda run: run["loss"])["rate"]
        assert {run["rate"] for run in train_experts.arm(RECORDED["runs"]["arms"], name)} == {best}


def test_information_by_hand():
    experts, labels = np.array([0, 0, 1, 1]), np.array([3, 3, 5, 5])
    assert train_experts.information(experts, labels) == pytest.approx(np.log(2))
    assert train_experts.information(experts, labels[[0, 2, 0, 2]]) == pytest.approx(0)
    tokens = np.array([7, 8, 7, 8])
    assert train_experts.within(experts, labels, tokens) == pytest.approx(np.log(2))  # the token says nothing of it
    assert train_experts.within(experts, labels, labels) == pytest.approx(0)  # the token says all of it
