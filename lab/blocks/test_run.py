"""Twelve blocks begin to learn as recorded, and with pre-norm they learn more."""

import numpy as np
import pytest

import plainformer as pf
from lab.blocks import run as blocks_run

record = pf.data.load_record


@pytest.mark.usefixtures("few_steps")
def test_runs_begin_as_recorded():
    stored, setting = record("blocks"), blocks_run.Setting("post", 3e-3, 0, True)
    (run,) = (run for run in stored["runs"] if {**run, **setting._asdict()} == run)
    text, _ = blocks_run.as_bytes()
    _, (curve,) = blocks_run.trained(setting, text, blocks_run.PER_POINT, seeds=(1,))
    atol = 0.005 if len(text) == stored["training_bytes"] else 0.5
    np.testing.assert_allclose(curve, run["curves"][1][:1], atol=atol)


def test_pre_norm_learns_more_than_post_norm():
    runs, counted = record("blocks")["runs"], record("blocks")["counted"]
    at_end = {
        placement: [loss for run in runs if run["placement"] == placement for loss in run["validation"]]
        for placement in ("pre", "post")
    }
    assert max(at_end["pre"]) < counted["2"]
    assert sum(loss < counted["2"] for loss in runs[-1]["validation"]) == 2  # of post-norm with a small beginning
    pre, post, small = (
        np.array(run["curves"]) for run in runs if (run["learning_rate"], run["warmup_steps"]) == (0.003, 0)
    )
    assert np.abs(pre[:, :5] - post[:, :5]).max() < 0.35
    assert pre[:, 8:10].mean(axis=1).max() < 3.26 - 0.15 < 3.26 - 0.1 < post[:, 8:10].mean(axis=1).min()  # the entropy
    assert post[:, 50:].mean(axis=1).min() > counted["1"] - 0.1
    assert sorted(small[:, 90:].mean(axis=1) < counted["1"] - 0.5) == [False, True, True]
