"""Today's ways of writing are judged as recorded, and the best setting is the best."""

import calendar
import re

import pytest

import plainformer as pf
from lab.writing_today import run as today


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("writing_today")


def test_told_stories_are_judged_as_the_world_tells_them(recorded):
    prompts, stories = today.beginnings()
    found = today.judged(prompts, stories)
    assert found == recorded["ways"]["told"]
    assert found["possible"] == 1
    wrong = [f"{prompt} Anna wears lamp ." for prompt in prompts]
    assert today.judged(prompts, wrong) == {"possible": 0, "again": 0, "different": 0.01, "sentences": 100}


def test_the_pattern_of_dates_is_the_calendar():
    for year in range(1900, 2100):
        for month in range(1, 13):
            for day in range(32):
                real = 1 <= day <= calendar.monthrange(year, month)[1]
                text = f"{year}-{month:02}-{day:02}"
                assert bool(re.fullmatch(today.DATE, text)) == real, text
                assert today.is_date(text) == real
    assert not today.is_date("20300-1-01")


def test_the_best_setting_writes_as_many_different_sentences_as_are_asked_for(recorded):
    least = 0.9 * recorded["ways"]["told"]["different"]
    for model in ("stored", "narrow"):
        for way, setting in today.best_settings(recorded, model).items():
            choices = {name: today.means(rows) for name, rows in recorded["ways"][model][way].items()}
            rich = [row["possible"] for row in choices.values() if row["different"] >= least]
            if rich:
                assert choices[setting]["possible"] == max(rich)
