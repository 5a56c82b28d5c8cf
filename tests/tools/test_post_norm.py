"""Twelve post-norm blocks with one knob turned after the other: what was recorded, and what chapter 05 says of it."""

import dataclasses
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_blocks
import train_post_norm
from post_norm_runs import AS_PYTORCH, KINDS, LONGER, MASKED, OTHERS, RUNS, SHORT, SMALLER, SOME, Run, bert

ROOT = Path(__file__).resolve().parents[2]
RECORDED = json.loads((ROOT / "models" / "post_norm.json").read_text(encoding="utf-8"))
FOUND = dict(zip(RUNS, RECORDED["runs"], strict=True))
CHAPTER = (ROOT / "chapters" / "05_depth.md").read_text(encoding="utf-8")
WORDS = " ".join(CHAPTER.split())
PAIRS = 2.43  # nats per byte of counted pairs, in `blocks.json`


def of(run: Run, name: str = "validation") -> list[float]:
    """What is recorded of the models of a run, by seed."""
    return [model[name] for model in FOUND[run]["models"]]


def test_every_run_is_recorded_in_the_card():
    for run, found in FOUND.items():
        assert json.loads(json.dumps(dataclasses.asdict(run))) == {
            name: found[name] for name in dataclasses.asdict(run)
        }
        assert [model["seed"] for model in found["models"]] == list(RUNS[run])
    assert train_post_norm.card(RECORDED) == (ROOT / "models" / "post_norm.md").read_text(encoding="utf-8")


def test_the_table_of_the_chapter_is_that_of_the_card():
    shown = [run for run in FOUND if train_post_norm.line_of(FOUND[run]) in CHAPTER]
    assert set(shown) == {Run(steps=SHORT), *(bert(small=small, steps=SHORT) for small in SOME)}


@pytest.mark.parametrize(("run", "seed"), [(Run(), 1), (bert(), 1), (bert(small=("values",), steps=SHORT), 0)])
def test_runs_start_to_learn_as_recorded(run, seed):
    text = train_blocks.as_bytes()[0]
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        *_, losses = train_post_norm.trained(run, text, seed, num_steps=10)
    same_text = len(text) == RECORDED["training_bytes"]
    np.testing.assert_allclose(losses, FOUND[run]["models"][seed]["first"], atol=0.005 if same_text else 0.3)


def test_small_values_decide_and_nothing_else():
    large = [
        run
        for run in (Run(steps=SHORT), *(bert(small=small, steps=SHORT) for small in SOME))
        if "values" not in run.small
    ]
    small = [bert(small=small, steps=SHORT) for small in SOME if "values" in small]
    assert (len(large), len(small)) == (4, 4)
    assert min(min(of(run)) for run in (*large, *OTHERS)) > 3.05
    assert max(max(of(run)) for run in (*small, *(run for run in SMALLER if run.factor != 0.9))) < PAIRS
    apart = of(Run(steps=SHORT), "apart")
    assert [f"{min(apart):.2f}", f"{max(apart):.2f}"] == ["0.05", "0.08"]
    assert "$r$ is 0.05 to 0.08" in WORDS
    assert max(of(Run(steps=SHORT), "apart_after")) < 0.02


def test_the_start_does_not_decide_alone():
    sharper = next(run for run in OTHERS if run.start == "times")
    tenth, fifth, _ = (run for run in SMALLER if run.start == "times" and run.small == ("values",))
    assert f"begins at {of(sharper, 'apart')[0]:.2f} and falls to zero" in WORDS
    assert of(sharper, "apart_after")[0] < 0.002
    assert f"it begins at {of(fifth, 'apart')[0]:.2f}, and the loss ends at {of(fifth)[0]:.2f}" in WORDS
    assert of(tenth)[0] > 3.1


def test_values_as_in_pytorch_are_small_enough():
    assert f"post-norm ends at {min(of(AS_PYTORCH)):.2f} to {max(of(AS_PYTORCH)):.2f}." in WORDS
    reader = train_post_norm.Reader(AS_PYTORCH, jax.random.key(0))
    of_value, of_output = (jnp.mean(w**2) * 32 for w in train_post_norm.matrices(reader.blocks)["values"])
    assert of_value == pytest.approx(1 / 2, rel=0.05)
    assert of_output == pytest.approx(1 / 3, rel=0.05)


def test_values_of_bert_keep_a_quarter_of_their_size():
    below = 1 - math.erfc(2**0.5)
    cut = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / below  # variance of a normal number within 2
    assert (round(cut, 2), round(768 * 0.02**2 * cut, 2)) == (0.77, 0.24)
    assert bert().std == pytest.approx(0.02 * math.sqrt(768 / 32))
    assert r"$768 \cdot 0.02^2 \cdot 0.77 \approx 0.24$" in CHAPTER


def test_hidden_bytes_need_small_values_too():
    large, small, pre = (of(run)[0] for run in MASKED)
    assert large > 3.2
    assert max(small, pre) < 3.05


def test_what_the_chapter_says_of_longer_training():
    slow, _, from_bert, quick, without, pre = LONGER
    (falling,) = (model for model in FOUND[slow]["models"] if model["validation"] < 2.9)
    assert f"{falling['validation']:.2f} and still falling" in WORDS
    assert 3.0 < falling["curve"][12] < 3.1 < falling["curve"][11]  # 20 means of 250 steps each
    assert np.all(np.diff(falling["curve"][12:]) < 0)
    assert f"at {min(of(from_bert)):.2f} to {max(of(from_bert)):.2f}, within 0.1 of pre-norm" in WORDS
    assert np.mean(of(from_bert)) - np.mean(of(pre)) < 0.1
    assert f"it ends at {min(of(pre)):.2f} to {max(of(pre)):.2f}, below the counts of triples (1.82)" in WORDS
    assert sorted(of(without))[2] > 2 > sorted(of(without))[1]
    assert max(of(quick)) < 1.85
    assert bert().small == KINDS
