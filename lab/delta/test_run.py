"""Layers with a state begin to learn as recorded, are asked what they should be, and remember what chapter 20 says."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.delta import run as delta_run, runs as delta_runs

record = pf.data.load_record


@pytest.mark.usefixtures("few_steps")
def test_runs_begin_as_recorded():
    task = next(iter(delta_run.KINDS))
    model = eqx.filter_jit(delta_runs.new_model)("delta", task, jax.random.key(0))
    batch = jax.tree.map(jnp.asarray, delta_runs.texts_of(task, (0, 0)))
    loss = pf.cross_entropy(*delta_runs.answered(model, batch))
    np.testing.assert_allclose([float(loss)], record("delta")[task.name]["delta"]["runs"][0]["first"][:1], atol=0.005)


def test_recall_asks_for_the_last_number_of_each_name():
    for names, numbers, answers in zip(*delta_runs.recall_texts(3, 5, in_use := 4, 20), strict=True):
        last = dict(zip(names[:20].tolist(), numbers[:20].tolist(), strict=True))
        assert len(last) <= in_use
        assert answers.tolist() == [last[name] for name in names[20:].tolist()]
        assert set(numbers[20:].tolist()) == {delta_runs.NUM_NUMBERS}


def test_rules_of_a_memory_begin_with_the_same_numbers_and_answer_differently():
    texts = delta_runs.recall_texts(4, 2, 3, 8)
    made = [delta_runs.Memory(rule, 32, 16, key=jax.random.key(1)) for rule in delta_runs.RULES]
    assert all(eqx.tree_equal(jax.tree.leaves(made[0]), jax.tree.leaves(each)) for each in made)
    answers = [np.asarray(each(texts.names, texts.numbers)) for each in made]
    assert all(np.abs(one - two).max() > 1e-3 for one, two in itertools.pairwise(answers))


def test_a_hybrid_of_layers_with_a_state_keeps_a_quarter_and_forgets_names():
    recorded = record("delta")
    plain, hybrid = recorded["stories"]["all attention"], recorded["stories"]["hybrid"]
    assert hybrid["cache"][1] / plain["cache"][1] == pytest.approx(1 / 4, abs=0.01)
    assert hybrid["milliseconds"]["step"][1] < plain["milliseconds"]["step"][1] / 2
    longer = {kind: each["32 names, 64 pairs"] for kind, each in recorded["knobs"]["five times the steps"].items()}
    assert 0.7 < min(longer["delta"], longer["plain delta"]) <= max(longer["delta"], longer["plain delta"]) < 0.8
    assert longer["softmax"] > 0.99
