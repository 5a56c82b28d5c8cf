"""The table of tasks says what the records say, and its verdicts follow from the seeds."""

from collections import Counter

import numpy as np
import pytest

import plainformer as pf
from lab.story_gru import readers
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


def is_each_ahead(ours: list[float], theirs: list[float], is_more_better: bool) -> bool:
    return min(ours) > max(theirs) if is_more_better else max(ours) < min(theirs)


def test_each_decoder_of_stories_is_ahead_of_each_gru_in_three_rows_and_none_by_the_harder_judge():
    ahead = [task for task in rows.stories() if task.verdict() == "ahead"]
    assert len(ahead) == 3
    assert all(is_each_ahead(task.ours, task.theirs, task.measure.is_more_better) for task in ahead)
    assert {task.verdict(np.ptp) for task in ahead} == {"level"}


def test_after_equally_many_steps_each_decoder_is_ahead_of_each_gru_in_six_rows():
    plans = readers.LONG_DECODER, readers.LONG_GRU._replace(times=readers.LONG_DECODER.times)
    longer = pf.data.load_record("story_gru")["longer"]
    ours, theirs = (rows.of_stories(longer[readers.LONGER.index(plan)]["seeds"]) for plan in plans)
    assert len(ours) == len(rows.stories()) == 6
    for what, seeds in ours.items():
        assert is_each_ahead(seeds, theirs[what], what not in ("above", "hidden word")), what


def test_at_where_a_thing_is_that_somebody_has_one_gru_of_three_is_worse():
    (task,) = [task for task in rows.stories() if "the one who has it" in task.name]
    worst, second, _ = sorted(task.theirs)
    assert worst < min(task.ours) - 0.02
    assert second > min(task.ours) - 0.005


def test_a_harder_judge_finds_the_transformer_ahead_in_fewer_tasks():
    facts, verdicts = pf.data.load_record("tasks")["facts"], [task.verdict() for task in rows.tasks()]
    assert {name: int(facts[name]) for name in tasks_run.VERDICTS} == Counter(verdicts)
    assert int(facts["ahead.by_the_ends"]) == [task.verdict(np.ptp) for task in rows.tasks()].count("ahead")
    assert int(facts["ahead.by_the_ends"]) < verdicts.count("ahead")


def test_the_mean_is_ahead_of_three_that_are_told_more_of_two_by_more_than_the_spread():
    gaps = [
        (task.ahead_of([task.told[1]]) / deviation(task.ours), task.told[0])
        for task in rows.tasks()
        if task.told and deviation(task.ours)
    ]
    (narrow, bars), *wide = sorted(each for each in gaps if each[0] > 0)
    assert (bars, narrow < 1) == ("a cell that is told where the bars cross", True)
    assert {told for _, told in wide} == {"a fit of the true law", "counted sentences, told which belong together"}
    assert min(wide)[0] > 2
