"""The live figure of recipes shows the recorded losses, each with the learning rate that it was trained with."""

import json

import numpy as np
import recipes_figure
import train_recipes_training as training

NUMBERS = json.loads(recipes_figure.NUMBERS.read_text(encoding="utf-8"))


def test_the_figure_reads_what_the_script_writes():
    assert json.loads(json.dumps(recipes_figure.numbers())) == NUMBERS


def test_every_recipe_has_its_losses_and_none_is_there_twice():
    names = [(run["optimiser"], run["schedule"], run["fall"]) for run in NUMBERS["runs"]]
    assert len(set(names)) == len(names) == 6
    for run in NUMBERS["runs"]:
        assert np.shape(run["curves"]) == (len(run["above"]), training.STEPS // training.EVERY)
        assert run["rate"] in training.LADDER
