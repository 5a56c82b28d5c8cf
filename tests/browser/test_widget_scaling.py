"""The live figure of scaling laws foretells what the package does."""

import json
from pathlib import Path

import numpy as np

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {"scaling": [("Work, operations", "End"), ("Numbers of the model", "Home")]}

NUMBERS = json.loads((Path(__file__).parents[2] / "widgets" / "scaling.json").read_text("utf-8"))


def check(state):
    law, work, size = pf.training.PowerLaw(*NUMBERS["law"]), 10 ** state["work"], 10 ** state["size"]
    np.testing.assert_allclose(state["best"], pf.training.best_size(work, law), rtol=1e-6)
    np.testing.assert_allclose(state["loss"], pf.training.power_law_loss(size, work / (6 * size), law), rtol=1e-6)
    assert state["range"][0] < state["best"] < state["range"][1]
    draws = [pf.training.PowerLaw(*each) for each in NUMBERS["draws"]]
    losses = [pf.training.power_law_loss(size, work / (6 * size), draw) for draw in draws]
    assert min(losses) <= state["margin"][0] <= state["margin"][1] <= max(losses)


def test_scaling_foretells_what_the_package_does(shared_figures):
    figure = shared_figures("scaling")
    check(figure.state)
    for name, key in (("Work, operations", "End"), ("Numbers of the model", "Home"), ("Work, operations", "Home")):
        before = figure.state
        figure.press(figure.control(name), key)
        assert figure.state != before
        check(figure.state)
