"""Recurrent networks begin to learn as recorded, are asked what they should be, and compare as the chapter says."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.delta import runs as delta_runs
from lab.recurrent import card as recurrent_card, run as recurrent_run, runs as recurrent_runs
from lab.recurrent.runs import KINDS

record = pf.data.load_record


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("kind", ["lstm", "gated"])
def test_runs_begin_as_recorded(kind):
    recorded, task, losses = record("recurrent"), recurrent_runs.COPY[10], []
    (run,) = (run for run in recorded["runs"][task.name] if (run["kind"], run["seed"]) == (kind, 1))
    assert run["rate"] == recorded["rates"][task.name][kind]
    settings = recurrent_runs.settings(run["num_steps"], run["rate"], 1)

    def note(metrics, step):
        losses.append(metrics["loss"])
        if step == 5:
            raise StopIteration

    model, batches = recurrent_runs.new_model(kind, task, 1), recurrent_runs.batches(task, 1)
    with pytest.raises(StopIteration):
        pf.fit(model, pf.training.next_token_loss, batches, settings, callbacks=[note], progress=False)
    np.testing.assert_allclose(losses, run["first"], atol=0.005)


def test_gated_linear_attention_writes_as_it_reads_and_differs_from_the_decoder_in_nothing_else():
    model, modern = (recurrent_runs.new_model(kind, recurrent_runs.COPY[10], 0) for kind in ("gated", "modern"))
    assert type(model.stack.blocks[0].feed_forward) is type(modern.stack.blocks[0].feed_forward)
    assert model.stack.scheme == modern.stack.scheme
    ids = jnp.asarray([3, 1, 4, 1, 5])
    states = [block.attention.start() for block in model.stack.blocks]
    rows = []
    for n in range(5):
        row, states = recurrent_run.extend_gated(model, ids[n : n + 1], states, jnp.asarray([n]))
        rows.append(model.logits(row))
    np.testing.assert_allclose(jnp.concatenate(rows), model(ids), atol=1e-5)


def test_copying_asks_for_the_symbols_after_the_mark():
    inputs, targets, is_due = recurrent_runs.copy_texts(3, (0,), 2)
    np.testing.assert_array_equal(targets[is_due].reshape(2, -1), inputs[:, : recurrent_runs.COPIED])
    assert (inputs[:, 11] == recurrent_runs.MARK).all()
    assert (inputs[:, 8:11] == recurrent_runs.BLANK).all()
    lengths = set()
    for inputs, targets, is_due in zip(*map(np.asarray, delta_runs.copy_texts(3, 20, 2, 6)), strict=True):
        length = inputs.tolist().index(delta_runs.SYMBOLS)
        lengths.add(length)
        np.testing.assert_array_equal(targets[is_due], inputs[:length])
        np.testing.assert_array_equal(np.flatnonzero(is_due), np.arange(length, 2 * length))
    assert lengths == {2, 3, 4, 5, 6}


def test_descend_stops_below_both_neighbours():
    seen = []

    def score(rate):
        seen.append(rate)
        return abs(rate - 5)

    assert recurrent_run.descend((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 2.0, score) == 5
    assert set(seen) == {1, 2, 3, 4, 5, 6}


def reached(name: str, kind, number: str = "judge") -> list[float]:
    """What the seeds of one kind reached."""
    return recurrent_card.runs_of(record("recurrent")["runs"][name], kind, number)


def gru_ahead(name: str, half: str) -> float:
    """By how much the GRU is ahead of today's decoder, in the mean of the seeds."""
    return float(np.mean(reached(name, "modern", half)) - np.mean(reached(name, "gru", half)))


def test_every_other_kind_is_ahead_of_the_decoder_of_2019_with_each_seed():
    assert all(len(reached("text", kind)) == 3 for kind in KINDS)
    oldest = min(reached("text", "classic"))
    assert all(max(reached("text", kind)) < oldest for kind in KINDS[1:])


def test_only_the_gru_is_ahead_of_the_decoder_of_today():
    modern = reached("text", "modern")
    assert max(reached("text", "gru")) < min(modern)
    means = [np.mean(reached("text", kind)) for kind in recurrent_card.OTHERS]
    assert max(abs(means - np.mean(modern))) < 2 * np.ptp(modern) < gru_ahead("text", "judge")
    in_equal_time = {kind: reached("equal time", kind)[0] for kind in KINDS}
    assert sorted(KINDS, key=in_equal_time.get)[:2] == ["gru", "modern"]


def test_after_a_long_training_the_older_block_is_no_worse():
    tried = reached("long", "modern") + reached("long, lower rate", "modern")
    assert reached("long", "classic")[0] < min(tried)


def test_the_gru_is_first_in_all_comparisons_on_text():
    runs = record("recurrent")["runs"]
    for name, half in itertools.product(("text", "equal time", "long", "shakespeare"), ("judge", "choose")):
        means = {kind: np.mean(reached(name, kind, half)) for kind in {run["kind"] for run in runs[name]}}
        assert min(means, key=means.get) == "gru", (name, half)
    assert 0 < gru_ahead("long", "choose") < 0.01
    pairs = zip(reached("widths", "modern"), reached("widths", "gru"), strict=True)
    assert min(modern - gru for modern, gru in pairs) > 0.01


def test_the_best_rate_of_copying_lies_inside_what_was_tried_wherever_anything_is_learned():
    guessed, outside = np.log(recurrent_runs.SYMBOLS), {}
    for name, kinds in record("recurrent")["tried with copying"].items():
        for kind, tried in kinds.items():
            (least, *_, most), losses = zip(*tried, strict=True)
            if not least < record("recurrent")["rates"][name][kind] < most:
                outside[name, kind] = losses
    assert [min(losses) for losses in outside.values()] == pytest.approx(len(outside) * [guessed], abs=0.005)


def test_over_80_blanks_the_plain_network_has_begun_with_one_seed_and_the_lstm_with_none():
    guessed = np.log(recurrent_runs.SYMBOLS)
    started, *others = reached("copy 80 long", "rnn")
    assert started < guessed - 0.2
    assert [*others, *reached("copy 80 long", "lstm")] == pytest.approx(5 * [guessed], abs=0.005)


def test_over_10_blanks_the_lstm_copies_with_two_seeds_and_at_a_lower_rate_with_each():
    first, second, third = reached("copy 10 long", "lstm", "share")
    assert second < 0.3 < 0.99 < min(first, third, *reached("copy, lower rate", "lstm", "share"))
    lower = {run["rate"] for run in record("recurrent")["runs"]["copy, lower rate"]}
    assert max(lower) < record("recurrent")["rates"]["copy 10 long"]["lstm"]


def test_recurrent_networks_compare_as_the_chapter_says():
    recorded = record("recurrent")
    for name, counts in recorded["parameters"].items():
        assert max(counts.values()) < 1.02 * min(counts.values()), name
    for delay, kind in itertools.product((10, 80), ("classic", "modern", "gated")):
        assert min(reached(f"copy {delay}", kind, "share")) > 0.99
    for delay in (10, 80):
        assert min(reached(f"copy {delay} long", "gru", "share")) > 0.99
    far = {run["kind"]: run["reach"][48] for run in recorded["runs"]["text"] if "reach" in run and run["seed"] == 0}
    assert max(far["classic"], far["modern"]) < 0.0305
    assert max(far[kind] for kind in KINDS[2:]) < 0.004
    reaches = {kind: np.mean(powers, axis=0) for kind, powers in record("reaches")["powers"].items()}
    assert reaches["rnn"][40] > max(reaches["modern"][40], reaches["classic"][40])
    assert min(reaches[kind][1:].min() for kind in ("classic", "modern")) > -2
    assert reaches["gru"][90] < reaches["lstm"][90] < min(reaches["rnn"][90], reaches["gated"][90])
