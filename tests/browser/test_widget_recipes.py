"""The live figure of recipes shows the package's learning rates and the recorded losses."""

import json
from pathlib import Path

import numpy as np

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "recipes": [("inverse square root", "Space"), ("constant, then a fall", "Space"), ("Steps of the fall", "End")]
}

NUMBERS = json.loads((Path(__file__).parents[2] / "widgets" / "recipes.json").read_text("utf-8"))
LABELS = {
    "cosine": "cosine",
    "constant": "constant",
    "wsd": "constant, then a fall",
    "inverse_sqrt": "inverse square root",
    "free": "constant, weights averaged",
}


def rates_of(run):
    """The package's learning rates, every fifth step."""
    name = {"wsd": "constant", "free": "constant"}.get(run["schedule"], run["schedule"])
    config = pf.TrainingConfig(
        num_steps=NUMBERS["steps"],
        learning_rate=run["rate"],
        warmup_steps=NUMBERS["warmup"],
        schedule=name,
        decay_steps=run["fall"],
        min_lr_ratio=NUMBERS["left"],
    )
    schedule = pf.training.learning_rate_schedule(config)
    return [float(schedule(step)) for step in range(0, NUMBERS["steps"] + 1, 5)]


def test_recipes_show_the_recorded_losses_and_the_rates_of_the_package(shared_figures):
    figure = shared_figures("recipes")
    adamw = [each for each in NUMBERS["runs"] if each["optimiser"] == "adamw"]
    for schedule, label in LABELS.items():
        figure.root.get_by_label(label, exact=True).check()
        run = next(each for each in adamw if each["schedule"] == schedule and each["fall"] in (0, 100))
        assert (figure.state["above"], figure.state["rate"]) == (run["above"], run["rate"])
        np.testing.assert_allclose(figure.state["rates"], rates_of(run), rtol=1e-4)
        assert f"{np.mean(run['above']):.3f} nats above" in figure.summary


def test_recipes_move_the_beginning_of_a_fall(shared_figures):
    figure = shared_figures("recipes")
    figure.root.get_by_label(LABELS["wsd"], exact=True).check()
    cosine = next(each for each in NUMBERS["runs"] if (each["optimiser"], each["schedule"]) == ("adamw", "cosine"))
    for key, fall in (("Home", NUMBERS["falls"][0]), ("End", NUMBERS["falls"][-1])):
        figure.press(figure.control("Steps of the fall"), key)
        assert figure.state["fall"] == fall
        assert figure.state["above"] is None
        assert "recorded with a fall of 100 steps alone" in figure.summary
        shown = {"schedule": "wsd", "fall": fall, "rate": cosine["rate"]}
        np.testing.assert_allclose(figure.state["rates"], rates_of(shown), rtol=1e-4)


def test_recipes_say_what_was_not_recorded(shared_figures):
    figure = shared_figures("recipes")
    figure.root.get_by_label("Muon", exact=True).check()
    figure.root.get_by_label(LABELS["constant"], exact=True).check()
    assert figure.state["above"] is None
    assert "recorded with the cosine alone" in figure.summary
    figure.root.get_by_label("cosine", exact=True).check()
    muon = next(each for each in NUMBERS["runs"] if each["optimiser"] == "muon")
    assert figure.state["above"] == muon["above"]
