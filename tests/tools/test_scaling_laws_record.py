"""The recorded trainings of chapter 19: the card, the forecast, and what can be redone."""

import json

import numpy as np
import pytest
import scaling_laws_figure
import train_scaling_laws
from book import ROOT

import plainformer as pf

RECORDED = pf.data.load_record("scaling_laws")


def test_card_says_what_was_recorded():
    card = (ROOT / "models" / "scaling_laws.md").read_text(encoding="utf-8")
    assert train_scaling_laws.card(RECORDED) == card


def test_the_forecast_is_the_one_of_the_recorded_runs():
    """What was written before the large run was trained follows from the others alone."""
    assert RECORDED["predicted"] == json.loads(train_scaling_laws.PREDICTED.read_text(encoding="utf-8"))
    runs, size = RECORDED["runs"]["world"], RECORDED["predicted"]["world"]["parameters"]
    assert size == RECORDED["large"]["parameters"] > 2 * max(run["parameters"] for run in runs)
    said = train_scaling_laws.interval(runs, size, RECORDED["floor"])
    for length, numbers in RECORDED["predicted"]["world"]["known floor"].items():
        np.testing.assert_allclose(said[length], numbers, atol=0.002)


def test_recorded_sizes_are_those_of_the_models():
    for of, runs in RECORDED["runs"].items():
        for run in runs:
            model = train_scaling_laws.make(run["width"], {"world": 40, "docstrings": 1024}[of], 0)
            assert pf.count_parameters(model) == run["parameters"]


def test_the_floor_is_the_lowest_loss_of_the_stories_kept_back():
    assert train_scaling_laws.least() == pytest.approx(pf.data.load_record("staircase")["lowest"], abs=1e-5)


def test_a_copy_leaves_the_run_where_it_is():
    windows = np.random.default_rng(0).integers(7, size=(64, train_scaling_laws.LENGTH + 1))
    text = train_scaling_laws.Text(7, windows, windows[:32], (4, 8))
    one, other = (train_scaling_laws.Run(16, text, 0) for _ in range(2))
    one.train({0: 0.01})
    one.model_after({1: 0.01, 2: 0.02})
    for run in (one, other):
        run.train(dict.fromkeys(range(0 if run is other else 1, 3), 0.01))
    np.testing.assert_array_equal(one.params.stack.final_norm.scale, other.params.stack.final_norm.scale)


def test_the_figure_has_the_law_of_the_record():
    shown, again = json.loads(scaling_laws_figure.NUMBERS.read_text("utf-8")), scaling_laws_figure.numbers()
    assert shown["sizes"] == again["sizes"]
    np.testing.assert_allclose(shown["law"], again["law"], rtol=1e-3)
    assert len(shown["draws"]) == scaling_laws_figure.NUM_DRAWS
