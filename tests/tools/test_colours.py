"""Heads that fetch two colours, with knobs turned: what was recorded, and what chapter 03 says of it."""

import json
from pathlib import Path

import jax
import pytest
import train_colours
from train_colours import LONGER, RUNS, Run

ROOT = Path(__file__).resolve().parents[2]
RECORDED = json.loads((ROOT / "models" / "colours.json").read_text(encoding="utf-8"))
LAYERS = {run["name"]: run["layers"] for run in RECORDED["runs"]}
CHAPTER = " ".join((ROOT / "chapters" / "03_multi_head.md").read_text(encoding="utf-8").split())


def errors(run: Run) -> list[float]:
    """The errors of a run, by seed."""
    return [layer["error"] for layer in LAYERS[run.name]]


def test_every_run_is_recorded_in_the_card():
    assert {run.name: len(seeds) for run, seeds in RUNS.items()} == {name: len(of) for name, of in LAYERS.items()}
    assert train_colours.card(RECORDED) == (ROOT / "models" / "colours.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("run", "seed"), [(Run(heads=2, head=12, shared=True), 1), (LONGER, 0)])
def test_a_layer_trained_again_is_as_recorded(run, seed):
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        layer = train_colours.trained(run, seed)
        off = train_colours.misses(layer, *train_colours.scenes_of(4096, seed=1000))
    assert abs(float((off**2).mean()) - errors(run)[seed]) < 0.003


def test_no_single_head_comes_below_the_bound():
    single = {run: errors(run) for run in RUNS if run.heads == 1 and run.patches == 5}
    assert len(single) >= 10
    assert min(map(min, single.values())) > 0.4
    assert max(max(errors(run)) for run in RUNS if run.heads > 1) < 0.001
    assert "at the lowest 0.40, never below" in CHAPTER
    assert "below 0.001" in CHAPTER


def test_with_two_patches_a_head_reaches_the_bound():
    two, three, four = (errors(run) for run in RUNS if run.patches < 5)
    assert two == pytest.approx([1 / 3] * 3, abs=0.004)
    assert min(three + four) > 0.37
    assert {f"{error:.3f}" for error in two} == {"0.333"}
    assert "a head comes down to the bound itself, 0.333 with each of three seeds." in CHAPTER


def test_what_the_chapter_says_of_the_third_direction():
    layers = LAYERS[LONGER.name]
    of_seeds = [f"{layer['error']:.2f}" for layer in layers]
    assert f"the errors are {', '.join(of_seeds[:-1])} and {of_seeds[-1]}" in CHAPTER
    lengths = [f"{layer['label_length']:.0f}" for layer in layers]
    assert f"The five lengths are {', '.join(lengths[:-1])} and {lengths[-1]}" in CHAPTER
    short, middle, *long = sorted(layers, key=lambda layer: layer["label_length"])
    assert short["error"] - 0.05 > middle["error"] > 0.01 + max(layer["error"] for layer in long)
    first = layers[0]
    rounded = [f"{first[name]:.2f}" for name in ("across", "along", "weight_change", "blind")]
    assert rounded == ["0.50", "0.21", "0.03", "0.50"]
    assert [f"{first[name]:.0f}" for name in ("colour_length", "label_length")] == ["2", "11"]


def test_what_the_chapter_says_of_the_rate():
    quick, longer = Run(steps=1500, batch=256, rate=0.03), Run(steps=7500, batch=256, rate=0.01)
    assert [f"{error:.2f}" for error in errors(quick)] == ["0.50"] * 3
    assert [f"{error:.2f}" for error in errors(Run(steps=3000))] == ["0.50"] * 3
    assert 0.40 < min(errors(longer)) < 0.405
    assert min(errors(LONGER)) > 0.40
