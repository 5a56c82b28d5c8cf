"""Speeds and needles of long texts are what they are called, and linear biases end as on the staircase."""

import numpy as np
import pytest

import plainformer as pf
from lab.long import run as long_run

record = pf.data.load_record


@pytest.mark.parametrize("scaling", long_run.ways(64).values())
def test_speeds_as_arrays_turn_like_the_package(scaling):
    rows = np.random.default_rng(0).normal(size=(70, 8)).astype(np.float32)
    expected = pf.RotaryPositions(scaling=scaling).rotate(rows)
    np.testing.assert_allclose(long_run.turning(8, scaling).rotate(rows), expected, rtol=0, atol=1e-5)


def test_needles_are_possible_stories_with_one_answer():
    for row, end, answer in zip(*long_run.needles(128), strict=True):
        chances = pf.data.next_words(long_run.growing.VOCABULARY.decode(row[: end + 1].tolist()))
        assert [long_run.growing.VOCABULARY.encode(word)[0] for word in chances] == [answer]
        assert abs(end - 3 - 128) <= 3


def test_positions_that_end_with_linear_biases_are_those_of_the_staircase():
    above = [seed["above"][0] for seed in record("long")["stories"]["at once"]["ALiBi"]]
    np.testing.assert_allclose(above, [row["above"] for row in record("staircase")["rows"]["positions"]], atol=0.015)


def at_once(name: str, what: str = "above") -> np.ndarray:
    """Without further training, by seed: nats above the floor by quarter, or shares of needles by distance."""
    return np.array([seed[what] for seed in record("long")["stories"]["at once"][name]])


def test_as_it_is_the_model_gets_worse_from_word_256_on_and_guesses_the_farthest_needles():
    above, found = at_once("as it is"), at_once("as it is", "needle").mean(axis=0)
    assert (above[:, 2:] > 2 * above[:, 1:3]).all()
    assert 1 / 3 < found[4] < 0.4 < found[3] < 0.7 < 1 == found[2]


def test_linear_scaling_finds_every_needle_and_spoils_the_first_words():
    assert (at_once("linear, 4", "needle") == 1).all()
    assert (at_once("linear, 4")[:, 0] > 10 * at_once("as it is")[:, 0]).all()


def test_ntk_aware_scaling_costs_the_first_words_little_and_finds_four_of_five_far_needles():
    more, found = (at_once("NTK-aware, 4") - at_once("as it is"))[:, 0], at_once("NTK-aware, 4", "needle")[:, 4]
    assert 0 < more.min() <= more.max() < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.05)


def test_yarn_and_by_parts_cost_the_first_words_more_and_find_nearly_all_needles():
    for name in ("by parts, 4", "YaRN, 4"):
        assert (at_once(name)[:, 0] > at_once("NTK-aware, 4")[:, 0]).all(), name
        assert at_once(name, "needle")[:, 4].mean() > 0.93, name


def test_slower_clocks_find_far_needles_at_a_cost_on_short_texts():
    for name in ("NTK-aware, 4", "by parts, 4", "YaRN, 4", "linear, 4"):
        assert (at_once(name)[:, 0] > at_once("as it is")[:, 0]).all(), name
        assert (at_once(name, "needle")[:, 4] > at_once("as it is", "needle")[:, 4]).all(), name


def test_a_larger_base_with_a_factor_of_8_does_the_same_as_by_parts_with_4():
    np.testing.assert_allclose(at_once("NTK-aware, 8").mean(axis=0), at_once("by parts, 4").mean(axis=0), atol=0.004)


def test_a_window_costs_the_short_text_nothing_and_what_lies_behind_it_is_gone():
    np.testing.assert_array_equal(at_once("window of 128")[:, 0], at_once("as it is")[:, 0])
    assert at_once("window of 128", "needle").mean(axis=0)[3:].max() < 0.4


def test_linear_biases_have_the_lowest_nats_and_find_half_of_the_far_needles():
    means = {name: at_once(name).mean(axis=0) for name in record("long")["stories"]["at once"]}
    lowest = means.pop("ALiBi")
    assert all((lowest < each).all() for each in means.values())
    np.testing.assert_allclose(at_once("ALiBi", "needle").mean(axis=0)[3:], 0.5, atol=0.1)


def test_a_larger_base_from_the_start_costs_nothing_and_delays_the_fall():
    (larger,), plain = at_once("larger base from the start"), at_once("as it is")
    (found,), by_plain = (at_once(name, "needle") for name in ("larger base from the start", "as it is"))
    assert plain[:, 0].min() < larger[0] < plain[:, 0].max()
    assert found[3] > by_plain[:, 3].max()
    assert found[4] < 0.45


def test_after_100_more_steps_all_five_are_level_and_find_every_needle():
    firsts = [first for first, *_ in record("long")["stories"]["further"].values()]
    assert len(firsts) == 5
    assert np.ptp([first["above"][3] for first in firsts]) < 0.004
    assert all(min(first["needle"]) == 1 for first in firsts)


def test_after_100_more_steps_unchanged_speeds_are_nearly_as_good_with_a_second_seed():
    plain, parts = (record("long")["stories"]["further"][name][1] for name in ("as it is", "by parts, 4"))
    assert abs(plain["above"][3] - parts["above"][3]) < 0.004
    assert 0 < parts["needle"][4] - plain["needle"][4] < 0.15
