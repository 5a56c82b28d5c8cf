"""Layers with a state begin to learn as recorded, are asked what they should be, and remember what the chapter says."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.delta import run as delta_run, runs as delta_runs

record = pf.data.load_record
STATES = ("linear", "plain delta", "delta")


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


@pytest.mark.parametrize(("best", "tried"), [(0.01, (0.003, 0.01, 0.03)), (0.1, (0.003, 0.01, 0.03, 0.1, 0.3))])
def test_larger_rates_are_tried_until_one_is_worse(best, tried, monkeypatch):
    monkeypatch.setattr(delta_runs, "run", lambda kind, task, seed, rate: {"loss": abs(np.log(rate / best))})
    assert delta_runs.losses("delta", delta_run.RECALL) == {rate: abs(np.log(rate / best)) for rate in tried}


def test_the_best_rates_of_recall_and_of_copying_lie_inside_what_was_tried():
    for name, kinds in ((task.name, record("delta")[task.name]) for task in delta_run.KINDS):
        for kind, of in kinds.items():
            rates = [*map(float, of["losses"])]
            assert min(rates) < of["rate"] < max(rates), (name, kind)
    assert {len(of["losses"]) for of in record("delta")["recall"].values()} == {4}


def copied(kind: str, text: str) -> list[float]:
    """The shares of symbols that are copied rightly, by seed."""
    return [run["right"][text] for run in record("delta")["copy"][kind]["runs"]]


def test_the_hybrid_copies_12_symbols_with_each_seed_and_attention_alone_with_two():
    first, second, third = copied("softmax", "12 symbols")
    assert second < 0.7 < 0.95 < min(first, third, *copied("hybrid", "12 symbols"))


def test_layers_with_a_state_alone_copy_fewer_of_12_symbols_than_the_hybrid():
    assert max(max(copied(kind, "12 symbols")) for kind in STATES) < min(copied("hybrid", "12 symbols")) - 0.1


def test_nobody_copies_24_symbols():
    assert max(max(copied(kind, "24 symbols")) for kind in record("delta")["copy"]) < 0.5


def test_the_hybrid_is_ahead_of_attention_alone_with_each_seed():
    plain, hybrid = (record("delta")["stories"][machine] for machine in ("all attention", "hybrid"))
    assert np.less(hybrid["above"], plain["above"]).all()
    assert all(each["tried"][str(each["rate"])] == min(each["tried"].values()) for each in (plain, hybrid))


def test_the_hybrid_keeps_a_quarter_of_1024_words_and_takes_less_than_half_as_long():
    plain, hybrid = (record("delta")["stories"][machine] for machine in ("all attention", "hybrid"))
    assert hybrid["cache"][1] / plain["cache"][1] == pytest.approx(1 / 4, abs=0.01)
    steps, of_plain = hybrid["milliseconds"]["step"], plain["milliseconds"]["step"]
    assert steps[1] < of_plain[1] / 2
    assert steps[0] > of_plain[0]


def test_attention_answers_more_than_99_of_100_names():
    assert min(min(run["right"].values()) for run in record("delta")["recall"]["softmax"]["runs"]) > 0.99


def test_the_delta_rule_errs_in_one_of_four_of_32_names_after_five_times_the_steps_too():
    recorded, text = record("delta"), "32 names, 64 pairs"
    for kind in ("delta", "plain delta"):
        once = [run["right"][text] for run in recorded["recall"][kind]["runs"]]
        assert [*once, recorded["knobs"]["five times the steps"][kind][text]] == pytest.approx(4 * [0.75], abs=0.03)
