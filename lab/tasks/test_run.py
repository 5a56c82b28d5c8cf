"""The table of tasks says what the records say, and its verdicts follow from the seeds."""

from collections import Counter

import numpy as np
import pytest

import plainformer as pf
from lab.tasks import rows, run as tasks_run
from lab.tasks.rows import NATS, SHARE
from lab.tasks.task import Measure, Task, Training, deviation, half_way


def task(ours: list[float], theirs: list[float], measure: Measure = SHARE, spread: float | None = None) -> Task:
    return Task("a task", "seq2seq", measure, "a rule", ours, theirs, Training(1, 0.1, (0.1,)), spread=spread)


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (task([0.90, 0.92], [0.88]), "ahead"),  # by 0.03, and the deviation is 0.014
        (task([0.90, 0.92], [0.89]), "level"),
        (task([0.90, 0.92], [0.95, 0.97]), "behind"),
        (task([0.90], [0.85, 0.80]), "ahead"),
        (task([0.90], [0.87, 0.80]), "level"),  # the spread of the opponent counts, too
        (task([0.90, 0.92], [0.85], NATS), "behind"),
        (task([0.90], [0.85], spread=0.03), "level"),
    ],
)
def test_verdicts_follow_from_means_and_spreads(one, verdict):
    assert one.verdict() == verdict


def test_a_rate_is_inside_if_smaller_and_larger_ones_were_tried():
    assert Training(1, 0.1, (0.01, 0.1, 1)).is_inside
    assert not Training(1, 1, (0.01, 0.1, 1)).is_inside
    assert not Training(1, 0.1, (0.1,)).is_inside


def test_a_curve_is_read_in_the_middle():
    assert half_way([[100 * n, n] for n in range(1, 9)]) == (0.5, 4)


def test_the_table_is_that_of_the_records_as_they_are():
    recorded = pf.data.load_record("tasks")["tasks"]
    for now, then in zip(tasks_run.results()["tasks"], recorded, strict=True):
        assert now["verdict"] == then["verdict"], now["name"]
        assert tasks_run.cells(now) == tasks_run.cells(then)


def test_each_seed_of_the_decoder_of_stories_is_ahead_of_each_gru_but_for_one_at_hidden_words():
    recorded = pf.data.load_record("tasks")["tasks"]
    on_stories = [each for each in recorded if each["opponent"] == "GRU" and each["chapter"] != "dynamics-noise"]
    assert len(on_stories) == 6
    for row in on_stories:
        sign = 1 if row["measure"]["is_more_better"] else -1
        behind = [seed for seed in row["ours"] if sign * seed <= max(sign * other for other in row["theirs"])]
        assert len(behind) == ("hidden word" in row["name"]), row["name"]


def test_a_harder_judge_finds_the_transformer_ahead_in_fewer_tasks():
    facts, verdicts = pf.data.load_record("tasks")["facts"], [task.verdict() for task in rows.tasks()]
    assert {name: int(facts[name]) for name in tasks_run.VERDICTS} == Counter(verdicts)
    assert int(facts["ahead.by_the_ends"]) == [task.verdict(np.ptp) for task in rows.tasks()].count("ahead")
    assert int(facts["ahead.by_the_ends"]) < verdicts.count("ahead")


def test_the_mean_is_ahead_of_two_that_are_told_more_of_one_by_more_than_the_spread():
    gaps = [
        (task.told[0], task.ahead_of([task.told[1]]) / deviation(task.ours))
        for task in rows.tasks()
        if task.told and deviation(task.ours)
    ]
    (bars, narrow), (law, wide) = sorted(each for each in gaps if each[1] > 0)
    assert (bars, law) == ("a cell that is told where the bars cross", "a fit of the true law")
    assert narrow < 1 < 2 < wide
