"""Today's ways of writing: the record, its card, and what was counted once more."""

import calendar
import re

import pytest
import train_writing_today as today
from book import ROOT

import plainformer as pf


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("writing_today")


def test_the_card_says_what_was_recorded(recorded):
    assert today.card(recorded) == (ROOT / "models" / "writing_today.md").read_text(encoding="utf-8")
    assert list(recorded["ways"]["stored"]) == list(today.settings())
    for way, choices in today.settings().items():
        rows = recorded["ways"]["stored"][way]
        assert {setting: len(found) for setting, found in rows.items()} == {
            setting: 1 if choice.get("temperature") == 0 else 3 for setting, choice in choices.items()
        }


def test_told_stories_are_judged_as_the_world_tells_them(recorded):
    prompts, stories = today.beginnings()
    found = today.judged(prompts, stories)
    assert found == recorded["ways"]["told"]
    assert found["possible"] == 1
    wrong = [f"{prompt} Anna wears lamp ." for prompt in prompts]
    assert today.judged(prompts, wrong) == {"possible": 0, "again": 0, "different": 0.01, "sentences": 100}


def test_greedy_writing_is_as_recorded(recorded):
    (found,) = today.continued(pf.load_pretrained("stories")[0], {"temperature": 0})
    (before,) = recorded["ways"]["stored"]["greedy"][""]
    for name in ("possible", "again", "different"):
        assert found[name] == pytest.approx(before[name], abs=0.02), name


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
