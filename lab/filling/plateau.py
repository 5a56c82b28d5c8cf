"""Filling in, each at its best: networks until their error stands still, others with copies; images moved or not.

What is chosen is chosen on the fold. `results` is a part of the record of `lab/filling`.
"""

from dataclasses import replace
from typing import Any

import plainformer as pf
from lab.filling.runs import (
    BATCH_SIZE,
    NUM_SHOWN,
    SEEDS,
    SHARPNESS,
    Run,
    by_neighbours,
    by_regression,
    choices,
    digits_of,
    error,
    measured,
    on_the_way,
    patches_of,
)
from lab.vision.run import moved_copies

STEPS_TO_CHOOSE, WAYS = 1000, {"as they are": False, "moved": True}
MOVES = {"one": 0, "five": 1, "nine": 2}  # copies of each image: as it is, moved in one direction, in both
# How each is trained, and the rates that are tried.
NETWORKS: dict[str, tuple[Run, tuple[float, ...]]] = {
    "masked autoencoder": (Run(0, steps=3500), (4e-3, 8e-3, 1.6e-2)),
    "perceptron": (Run(0, steps=3500, plain=True, width=256), (2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2)),
}


def chosen(errors: dict[Any, float]) -> Any:
    """What has the lowest error."""
    return min(errors, key=lambda each: errors[each])


def on_the_fold(run: Run, rates: tuple[float, ...]) -> dict[str, Any]:
    """The errors there by rate, after 1,000 steps, and at the best rate by steps."""
    run = replace(run, part="rest")
    errors = {rate: measured(replace(run, rate=rate, steps=STEPS_TO_CHOOSE)) for rate in rates}
    curve = on_the_way(replace(run, rate=chosen(errors)))
    return {
        "rates": {f"{rate:g}": round(each, 5) for rate, each in errors.items()},
        "rate": chosen(errors),
        "curve": {steps: round(each, 5) for steps, each in curve.items()},
    }


def by_network(run: Run, rates: tuple[float, ...]) -> dict[str, Any]:
    """Whether images are moved, and the rate, by the fold; then the errors of three seeds on the test."""
    ways = {name: on_the_fold(replace(run, moved=moved), rates) for name, moved in WAYS.items()}
    way = chosen({name: each["curve"][str(run.steps)] for name, each in ways.items()})
    run = replace(run, rate=ways[way]["rate"], moved=WAYS[way])
    twice = replace(run, steps=2 * run.steps)
    curve = on_the_way(replace(twice, part="rest"))
    return {
        "parameters": pf.count_parameters(run.start()),
        "fold": ways,
        "fold, twice the steps": {steps: round(each, 5) for steps, each in curve.items()},
        "images": way,
        "rate": run.rate,
        "steps": run.steps,
        "passes": round(run.steps * BATCH_SIZE / len(digits_of("all")[0].labels)),
        "errors": [measured(replace(run, seed=seed)) for seed in SEEDS],
        "errors, twice the steps": [measured(replace(twice, seed=seed)) for seed in SEEDS],
    }


def by_copies(fill, settings: tuple[float, ...]) -> dict[str, Any]:
    """What learns nothing but looks at moved copies: which copies and which setting, and the error on the test."""

    def error_on(part: str, moves: str, setting: float) -> float:
        learned, judged = digits_of(part)
        copies, images = patches_of(moved_copies(learned, MOVES[moves])), patches_of(judged)
        shown = choices(len(images), NUM_SHOWN, 0)
        return error(fill(copies, images, shown, setting), images, shown)

    grid = {(moves, setting): error_on("rest", moves, setting) for moves in MOVES for setting in settings}
    moves, setting = chosen(grid)
    return {
        "grid": {f"{each}, {value:g}": round(found, 5) for (each, value), found in grid.items()},
        "moves": moves,
        "setting": setting,
        "error": error_on("all", moves, setting),
    }


def results() -> dict[str, Any]:
    """What all come to."""
    return {name: by_network(*how) for name, how in NETWORKS.items()} | {
        "neighbours": by_copies(by_neighbours, SHARPNESS),
        "regression": by_copies(by_regression, (1e-4, 1e-3, 1e-2, 1e-1)),
    }
