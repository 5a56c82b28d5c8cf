"""The live figure of training runs replays what was recorded, and shows what the chapter says of it."""

import json

import numpy as np
import runs_figure
from records import MODELS
from train_blocks import NUM_STEPS, SEEDS, SETTINGS

REPLAYED = json.loads(runs_figure.NUMBERS.read_text("utf-8"))


def test_runs_figure_has_the_recorded_losses():
    recorded = json.loads((MODELS / "blocks.json").read_text("utf-8"))
    assert runs_figure.run_numbers() == REPLAYED
    assert REPLAYED["counted"] == recorded["counted"]
    assert len(REPLAYED["runs"]) == len(SETTINGS)
    for found, run in zip(REPLAYED["runs"], recorded["runs"], strict=True):
        assert list(found.values()) == [run[name] for name in (*runs_figure.NAMES, "validation", "curves")]
        assert np.shape(found["curves"]) == (len(SEEDS), NUM_STEPS // REPLAYED["perPoint"])


def test_runs_figure_shows_what_the_chapter_says():
    """At the larger rate without warm-up: together for a hundred steps, then post-norm stays where counting is."""
    pre, post, small = (
        np.array(run["curves"]) for run in REPLAYED["runs"] if (run["rate"], run["warmup"]) == (0.003, 0)
    )
    counted = REPLAYED["counted"]["1"]
    assert np.abs(pre[:, :5] - post[:, :5]).max() < 0.35
    assert pre[:, 19].mean() < counted - 0.4 < counted - 0.2 < post[:, 19].mean() < counted + 0.1
    assert post[:, 50:].mean(axis=1).min() > counted - 0.1
    assert sorted(small[:, 90:].mean(axis=1) < counted - 0.5) == [False, True, True]
