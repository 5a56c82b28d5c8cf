"""A layer that fetches colours ends as recorded, and one head alone stays above the bound."""

import jax
import pytest

import plainformer as pf
from lab.colours import run as colours_run

record = pf.data.load_record


def test_a_layer_that_fetches_colours_ends_as_recorded():
    run, seed = colours_run.Run(heads=2, head=12, shared=True), 1
    (layers,) = (each["layers"] for each in record("colours")["runs"] if each["name"] == run.name)
    with jax.numpy_dtype_promotion("standard"):
        layer = colours_run.trained(run, seed)
        off = colours_run.misses(layer, *colours_run.scenes_of(4096, seed=1000))
    assert abs(float((off**2).mean()) - layers[seed]["error"]) < 0.003


def test_no_single_head_comes_below_the_bound():
    layers = {run["name"]: run["layers"] for run in record("colours")["runs"]}
    errors = {run: [layer["error"] for layer in layers[run.name]] for run in colours_run.RUNS}
    single = {run: each for run, each in errors.items() if run.heads == 1 and run.patches == 5}
    assert len(single) >= 10
    assert 0.4 < min(map(min, single.values())) < 0.405
    assert max(max(each) for run, each in errors.items() if run.heads > 1) < 0.001
    two, three, four = (each for run, each in errors.items() if run.patches < 5)
    assert two == pytest.approx([1 / 3] * 3, abs=0.004)
    assert min(three + four) > 0.37
