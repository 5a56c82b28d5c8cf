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
