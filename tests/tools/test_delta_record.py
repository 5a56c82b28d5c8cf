"""The layers with a state of chapter 20: the record, its card, what the chapter says of it, and the tasks."""

import itertools
from pathlib import Path

import delta_runs
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_delta

import plainformer as pf

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("delta")


def test_the_card_says_what_was_recorded(recorded):
    assert train_delta.card(recorded) == (MODELS / "delta.md").read_text(encoding="utf-8")


def test_every_kind_has_every_seed_at_its_best_rate(recorded):
    for task, kinds in train_delta.KINDS.items():
        assert list(recorded[task.name]) == list(kinds)
        for kind, found in recorded[task.name].items():
            assert len(found["runs"]) == len(delta_runs.SEEDS)
            assert found["rate"] == float(min(found["losses"], key=found["losses"].get))
            assert found["parameters"] == delta_runs.parameters(kind, task)


def test_what_the_chapter_says_of_the_record(recorded):
    words = " ".join((MODELS.parent / "chapters" / "20_modern.md").read_text(encoding="utf-8").split())
    plain, hybrid = recorded["stories"]["all attention"], recorded["stories"]["hybrid"]
    assert f"with {hybrid['parameters'] / plain['parameters'] - 1:.0%} more numbers".replace("%", " %") in words
    assert hybrid["cache"][1] / plain["cache"][1] == pytest.approx(1 / 4, abs=0.01)
    steps = [of["milliseconds"]["step"] for of in (hybrid, plain)]
    assert steps[0][1] < steps[1][1] / 2
    assert "a quarter of the bytes, and a step takes less than half as long;" in words
    assert f"of 128 words, {steps[0][0]:.0f} milliseconds against {steps[1][0]:.0f}." in words
    last = [run["right"]["32 names, 64 pairs"] for run in recorded["recall"]["linear"]["runs"]]
    assert f"has {min(last):.0%} to {max(last):.0%} of 32 names".replace("% to", " to").replace("%", " %") in words
    longer = recorded["knobs"]["five times the steps"]
    assert "Of 32 names one answer in four is wrong, for one seed after five times the steps, too" in words
    assert all(0.7 < longer[kind]["32 names, 64 pairs"] < 0.8 for kind in ("delta", "plain delta"))
    assert longer["softmax"]["32 names, 64 pairs"] > 0.99


@pytest.mark.parametrize("task", train_delta.KINDS)
def test_runs_start_as_recorded(task, recorded):
    kind = "delta"
    model = eqx.filter_jit(delta_runs.new_model)(kind, task, jax.random.key(0))
    batch = jax.tree.map(jnp.asarray, delta_runs.texts_of(task, (0, 0)))
    loss = pf.cross_entropy(*delta_runs.answered(model, batch))
    assert float(loss) == pytest.approx(recorded[task.name][kind]["runs"][0]["first"][0], abs=2e-3)


def test_recall_asks_for_the_last_number_of_each_name():
    texts = delta_runs.recall_texts(3, 5, in_use := 4, 20)
    for names, numbers, answers in zip(*texts, strict=True):
        last = dict(zip(names[:20].tolist(), numbers[:20].tolist(), strict=True))
        assert len(last) <= in_use
        assert answers.tolist() == [last[name] for name in names[20:].tolist()]
        assert set(numbers[20:].tolist()) == {delta_runs.NUM_NUMBERS}


def test_copying_asks_for_the_symbols_once_more():
    texts = delta_runs.copy_texts(3, 20, 2, 6)
    lengths = set()
    for inputs, targets, is_due in zip(*map(np.asarray, texts), strict=True):
        length = inputs.tolist().index(delta_runs.SYMBOLS)
        lengths.add(length)
        np.testing.assert_array_equal(targets[is_due], inputs[:length])
        np.testing.assert_array_equal(np.flatnonzero(is_due), np.arange(length, 2 * length))
    assert lengths == {2, 3, 4, 5, 6}


def test_the_rules_differ_in_nothing_else():
    """All rules begin with the same numbers, and answer differently."""
    texts = delta_runs.recall_texts(4, 2, 3, 8)
    made = {rule: delta_runs.Memory(rule, 32, 16, key=jax.random.key(1)) for rule in delta_runs.RULES}
    leaves = [jax.tree.leaves(each) for each in made.values()]
    for other in leaves[1:]:
        for one, two in zip(leaves[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    answers = [np.asarray(each(texts.names, texts.numbers)) for each in made.values()]
    assert all(np.abs(one - two).max() > 1e-3 for one, two in itertools.pairwise(answers))
