"""Copies of a run leave it where it is, and the forecast follows from the recorded runs."""

import json

import numpy as np
import pytest

import plainformer as pf
from lab.scaling_laws import run as scaling_laws_run
from lab.verbs_last import run as verbs_last_run

record = pf.data.load_record


def test_the_floor_of_the_world_is_the_lowest_loss_of_the_stories_kept_back():
    assert scaling_laws_run.least() == pytest.approx(record("staircase")["lowest"], abs=1e-5)
    least = verbs_last_run.texts("verbs last", verbs_last_run.NUM_KEPT_BACK, 1000)[2]
    assert least == pytest.approx(record("verbs_last")["least"], abs=1e-4)


def test_a_copy_leaves_the_run_where_it_is():
    windows = np.random.default_rng(0).integers(7, size=(64, scaling_laws_run.LENGTH + 1))
    text = scaling_laws_run.Text(7, windows, windows[:32], (4, 8))
    one, other = (scaling_laws_run.Run(16, text, 0) for _ in range(2))
    one.train({0: 0.01})
    one.model_after({1: 0.01, 2: 0.02})
    for run in (one, other):
        run.train(dict.fromkeys(range(0 if run is other else 1, 3), 0.01))
    np.testing.assert_array_equal(one.params.stack.final_norm.scale, other.params.stack.final_norm.scale)


def test_the_forecast_is_the_one_of_the_recorded_runs():
    """What was written before the large run was trained follows from the others alone."""
    recorded = record("scaling_laws")
    assert recorded["predicted"] == json.loads(scaling_laws_run.PREDICTED.read_text(encoding="utf-8"))
    runs, size = recorded["runs"]["world"], recorded["predicted"]["world"]["parameters"]
    assert size == recorded["large"]["parameters"] > 2 * max(run["parameters"] for run in runs)
    said = scaling_laws_run.interval(runs, size, recorded["floor"])
    for length, numbers in recorded["predicted"]["world"]["known floor"].items():
        np.testing.assert_allclose(said[length], numbers, atol=0.002)
