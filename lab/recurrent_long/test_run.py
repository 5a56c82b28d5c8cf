"""Longer trainings of recurrent networks begin as recorded, and compare as the chapter says."""

import pytest

import plainformer as pf
from lab.recurrent.runs import new_model
from lab.recurrent_long import run as recurrent_long


def recorded() -> dict:
    return pf.data.load_record("recurrent_long")


def losses(kind: str) -> list[float]:
    return recurrent_long.ends(recorded()["docstrings"][kind]["runs"])


@pytest.mark.usefixtures("few_steps")
def test_texts_and_models_are_those_that_were_judged():
    assert recorded()["letters"] == len(recurrent_long.texts()["training"])
    model = new_model("modern", recurrent_long.DOCSTRINGS, 0)
    assert recurrent_long.loss_on("choose", recurrent_long.DOCSTRINGS, model) == pytest.approx(4.6, abs=0.3)


def test_each_rate_is_below_both_its_neighbours_or_inside_those_tried():
    for each in [*recorded()["docstrings"].values(), *recorded()["copying"].values()]:
        rates = sorted(map(float, each["tried"]))
        assert each["rate"] == min(rates, key=lambda rate: each["tried"][f"{rate:g}"])
        assert rates[0] < each["rate"] < rates[-1]
