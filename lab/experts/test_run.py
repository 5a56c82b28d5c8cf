"""What the choice of an expert tells is counted right."""

import numpy as np
import pytest

import plainformer as pf
from lab.experts import run as experts_run

RUNS = pf.data.load_record("experts")["runs"]


def test_information_of_experts_by_hand():
    experts, labels = np.array([0, 0, 1, 1]), np.array([3, 3, 5, 5])
    assert experts_run.information(experts, labels) == pytest.approx(np.log(2))
    assert experts_run.information(experts, labels[[0, 2, 0, 2]]) == pytest.approx(0)
    tokens = np.array([7, 8, 7, 8])
    assert experts_run.within(experts, labels, tokens) == pytest.approx(np.log(2))  # the token says nothing of it
    assert experts_run.within(experts, labels, labels) == pytest.approx(0)  # the token says all of it


def of_seeds(name: str, arm: str, what: str = "loss") -> np.ndarray:
    return np.array([run[what] for run in RUNS[name] if run["arm"] == arm])


def test_experts_start_faster_with_each_seed():
    assert (of_seeds("arms", "experts") < of_seeds("arms", "equal work")).all()


def test_equal_size_starts_no_better_than_equal_work():
    assert of_seeds("arms", "equal size").mean() >= of_seeds("arms", "equal work").mean()


def test_the_order_is_the_same_at_width_64():
    experts, work, size = (of_seeds("width 64", arm).item() for arm in ("experts", "equal work", "equal size"))
    assert experts < work < size


def test_after_five_times_the_steps_experts_are_level_with_equal_work_and_behind_equal_size():
    experts, work, size = (of_seeds("longer", arm).min() for arm in ("experts", "equal work", "equal size"))
    level = 0.001
    assert abs(experts - work) < level < min(experts, work) - size


def test_the_choice_of_an_expert_follows_the_letter_and_hardly_the_language():
    told = [block["told"] for run in RUNS["names"] for block in run["reading"]]
    assert min(each["token"] for each in told) > 0.5 > 0.02 > max(each["language"] for each in told)


def test_without_balance_the_busiest_expert_has_twice_an_equal_share():
    balanced, moved, without = (
        of_seeds(name, arm, "busiest")
        for name, arm in (("arms", "experts"), ("moved bias", "moved bias"), ("no balance", "no balance"))
    )
    assert max(balanced.max(), moved.max()) < 1.3 < 1.8 < without.min() <= without.max() < 2.2
    assert of_seeds("one, no balance", "one, no balance", "busiest").min() > 3


def test_losses_with_and_without_balance_differ_less_than_seeds_do():
    experts = of_seeds("arms", "experts")
    means = [experts.mean(), *(of_seeds(name, name).mean() for name in ("moved bias", "no balance"))]
    assert np.ptp(means) < np.ptp(experts)
    assert abs(of_seeds("one, no balance", "one, no balance") - experts[0]) < np.ptp(experts)
