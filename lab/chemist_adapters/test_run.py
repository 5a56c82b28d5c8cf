"""Adapters help the chemist's model to guess, and not to map, as the chapter on models of others says."""

import numpy as np
import pytest

import plainformer as pf

before, *runs = pf.data.load_record("chemist_adapters")["runs"]
ADAPTED = [run for run in runs if run["where"] == "adapters of two maps"]
WHOLE = [run for run in runs if run["where"] == "all numbers"]


def at(rate: float, of: list[dict]) -> list[dict]:
    """The runs at a rate, which are three seeds at the better one."""
    found = [run for run in of if run["rate"] == rate]
    assert len(found) == 3
    return found


def test_adapters_help_at_both_rates():
    assert len(ADAPTED) == 4
    assert all(run["surprise"] < before["surprise"] - 0.4 and run["right"] > before["right"] for run in ADAPTED)


def test_adapters_more_than_halve_the_surprise_at_the_better_rate():
    better, (other,) = at(0.01, ADAPTED), (run for run in ADAPTED if run["rate"] == 0.001)
    assert all(run["surprise"] < min(other["surprise"], before["surprise"] / 2) for run in better)
    assert all(run["right"] > before["right"] for run in better)


def test_training_all_numbers_leaves_half_the_surprise_of_adapters():
    for whole, adapted in zip(at(0.0001, WHOLE), at(0.01, ADAPTED), strict=True):
        assert whole["surprise"] == pytest.approx(adapted["surprise"] / 2, rel=0.05)
        assert whole["right"] > adapted["right"]


def test_atoms_are_not_mapped_more_surely():
    assert np.mean([run["mapped"] for run in at(0.01, ADAPTED)]) <= before["mapped"]
    assert max(run["mapped"] for run in WHOLE) < before["mapped"]
