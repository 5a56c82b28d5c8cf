"""Twelve blocks from smaller weights, for longer: what was recorded, and what the chapter says of it."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest
import train_blocks
import train_post_norm
from train_post_norm import RUNS, Longer

ROOT = Path(__file__).resolve().parents[2]
RECORDED = json.loads((ROOT / "models" / "post_norm.json").read_text(encoding="utf-8"))


def test_every_run_is_recorded_in_card_and_chapter():
    assert [Longer(*list(run.values())[:4]) for run in RECORDED["runs"]] == RUNS
    assert train_post_norm.card(RECORDED) == (ROOT / "models" / "post_norm.md").read_text(encoding="utf-8")
    chapter = (ROOT / "chapters" / "05_depth.md").read_text(encoding="utf-8")
    assert all(train_post_norm.line_of(run) in chapter for run in RECORDED["runs"])


@pytest.mark.parametrize("number", [1, 2])
def test_runs_start_to_learn_as_recorded(number):
    run, text = RECORDED["runs"][number], train_blocks.as_bytes()[0]
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        _, losses = train_post_norm.trained(RUNS[number], text, num_steps=10, seeds=(1,))
    same_text = len(text) == RECORDED["training_bytes"]
    np.testing.assert_allclose(losses[0], run["first"][1], atol=0.005 if same_text else 0.3)
