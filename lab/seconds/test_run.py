"""Weights in whole numbers are those that were meant."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.seconds import roof, run as seconds_run


def test_rows_in_whole_numbers_by_hand():
    """The largest of a row is met exactly, and no other is off by more than half a step."""
    whole, step = seconds_run.in_whole_numbers(jnp.asarray([[127.0, -3.4], [0.0, 0.0], [7.0, -14.0]]))
    np.testing.assert_array_equal(whole, [[127, -3], [0, 0], [64, -127]])
    np.testing.assert_allclose(step, [[1], [0], [14 / 127]], rtol=1e-6)
    assert whole.dtype == jnp.int8


def test_a_roof_by_hand():
    """A decoder of 1,000 million bytes at 10 GB per second, and 4,000 million operations at 20 thousand million."""
    rates = {"gigabytes": 10.0, "operations": 20.0}
    assert roof.milliseconds(roof.Work(1e9, 1e9), rates) == pytest.approx(100)
    assert roof.milliseconds(roof.Work(1e9, 1e9).plus(roof.Work(0, 3e9)), rates) == pytest.approx(200)


def test_a_round_fetches_the_draft_for_each_row_and_the_model_once():
    model, draft = seconds_run.PAIR
    work = roof.speculating(model, draft, 48, 4)
    once = [roof.writing(config, 48) for config in (model, draft)]
    assert work.num_bytes == once[0].num_bytes + 5 * once[1].num_bytes
    assert work.operations == 5 * (once[0].operations + once[1].operations)
    assert 0.09 < roof.weights(draft) / roof.weights(model) < 0.11


def test_what_the_table_shows_as_faster_is_what_the_chapter_says():
    found = pf.data.load_record("seconds")
    faster = {line.name: line.before / line.after for line in seconds_run.lines(found)}
    slower = {name for name, times in faster.items() if times < 1}
    assert slower == {name for name in faster if "bits" in name or ("draft" in name and "42.9 million" not in name)} | {
        "a draft for 42.9 million numbers, temperature 0"
    }
    assert found["reading"]["16384"]["at once"] > 2 * found["reading"]["16384"]["by blocks"]


def test_a_draft_a_tenth_the_size_pays_for_the_large_model_at_temperature_1_only():
    found = pf.data.load_record("seconds")
    pair, speculation = found["large pair"], found["speculation"]
    times = {each: pair["alone"] * speculation[each]["per call"]["4"] / pair["4"] for each in speculation}
    assert times["0"] < 1 < 1.05 < times["1"]
