"""Post-norm begins to learn as recorded, and small values decide whether it learns."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.blocks import run as blocks_run
from lab.post_norm import run as post_norm_run
from lab.post_norm.runs import AS_PYTORCH, LONGER, MASKED, OTHERS, RUNS, SHORT, SMALLER, SOME, Run, bert

record = pf.data.load_record


@pytest.mark.usefixtures("few_steps")
def test_runs_begin_as_recorded():
    stored, text = record("post_norm"), blocks_run.as_bytes()[0]
    run = bert(small=("values",), steps=SHORT)
    found = stored["runs"][list(RUNS).index(run)]["models"][0]["first"]
    losses = post_norm_run.trained(run, text, 0, num_steps=10)[-1]
    np.testing.assert_allclose(losses, found, atol=0.005 if len(text) == stored["training_bytes"] else 0.5)


def test_values_as_in_pytorch_are_small():
    reader = post_norm_run.Reader(AS_PYTORCH, jax.random.key(0))
    of_value, of_output = (jnp.mean(w**2) * 32 for w in post_norm_run.matrices(reader.blocks)["values"])
    assert of_value == pytest.approx(1 / 2, rel=0.05)
    assert of_output == pytest.approx(1 / 3, rel=0.05)


def test_small_values_decide_whether_post_norm_learns():
    found = dict(zip(RUNS, record("post_norm")["runs"], strict=True))
    pairs = record("blocks")["counted"]["2"]

    def of(run: Run, name: str = "validation") -> list[float]:
        return [model[name] for model in found[run]["models"]]

    short = (Run(steps=SHORT), *(bert(small=small, steps=SHORT) for small in SOME))
    large = [run for run in short if "values" not in run.small]
    small = [run for run in short if "values" in run.small]
    assert (len(large), len(small)) == (4, 4)
    assert min(min(of(run)) for run in (*large, *OTHERS)) > 3.05
    assert max(max(of(run)) for run in (*small, *(run for run in SMALLER if run.factor != 0.9))) < pairs
    large, small, pre = (of(run)[0] for run in MASKED)
    assert large > 3.2 > 3.05 > max(small, pre)
    _, _, from_bert, quick, without, pre = LONGER
    assert np.mean(of(from_bert)) - np.mean(of(pre)) < 0.1
    assert sorted(of(without))[2] > 2 > sorted(of(without))[1]
    assert max(of(quick)) < 1.85
    cut = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / (1 - math.erfc(2**0.5))  # the variance of a cut normal number
    assert (round(cut, 2), round(768 * 0.02**2 * cut, 2)) == (0.77, 0.24)
    assert bert().std == pytest.approx(0.02 * math.sqrt(768 / 32))
