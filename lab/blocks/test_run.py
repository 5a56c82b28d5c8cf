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
    pre, post, small = (
        np.array(run["curves"]) for run in runs if (run["learning_rate"], run["warmup_steps"]) == (0.003, 0)
    )
    assert np.abs(pre[:, :5] - post[:, :5]).max() < 0.35
    assert pre[:, 8:10].mean(axis=1).max() < 3.26 - 0.15 < 3.26 - 0.1 < post[:, 8:10].mean(axis=1).min()  # the entropy
    assert post[:, 50:].mean(axis=1).min() > counted["1"] - 0.1
    assert sorted(small[:, 90:].mean(axis=1) < counted["1"] - 0.5) == [False, True, True]


def at_end(placement: str, is_small: bool = False, **settings: float) -> list[float]:
    """Losses on the validation text of all runs and seeds with these settings."""
    asked = {"placement": placement, "is_small": is_small, **settings}
    return [loss for run in record("blocks")["runs"] if asked.items() <= run.items() for loss in run["validation"]]


def test_pre_norm_does_a_little_better_than_counted_pairs_and_longer_better_than_triples():
    counted, short = record("blocks")["counted"], at_end("pre")
    assert counted["2"] - 0.2 < min(short) < max(short) < counted["2"]
    (longer,) = (run for run in record("post_norm")["runs"] if (run["placement"], run["steps"]) == ("pre", 5000))
    assert max(model["validation"] for model in longer["models"]) < counted["3"]


@pytest.mark.parametrize("warmup_steps", [0, 200])
def test_post_norm_is_hardly_better_than_counted_bytes_or_no_better_with_or_without_a_warm_up(warmup_steps):
    counted, losses = record("blocks")["counted"], at_end("post", warmup_steps=warmup_steps)
    assert counted["1"] - min(losses) < 0.2 * (counted["1"] - counted["2"])
    assert max(losses) > counted["1"]


def test_post_norm_with_smaller_last_matrices_learns_with_two_seeds_of_three():
    pairs, losses = record("blocks")["counted"]["2"], sorted(at_end("post", is_small=True))
    assert losses[1] < pairs < 3.26 < losses[2]
