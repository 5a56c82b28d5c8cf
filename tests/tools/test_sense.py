"""How much of what the decoder of stories writes is possible: what was recorded, and what the chapter says of it."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sense_record

import plainformer as pf

ROOT = Path(__file__).resolve().parents[2]
recorded = cache(lambda: pf.data.load_record("sense"))
CHAPTER = (ROOT / "chapters" / "08_generation.md").read_text(encoding="utf-8")


def test_card_and_chapter_say_what_was_recorded():
    assert sense_record.card(recorded()) == (ROOT / "models" / "sense.md").read_text(encoding="utf-8")
    assert sense_record.table(recorded()["ways"]) in CHAPTER
    drawn = recorded()["ways"]["temperature 1"]
    early, late = (100 * np.mean([each[half] for each in drawn]) for half in ("early", "late"))
    text = " ".join(CHAPTER.split())
    assert f"possible in {early:.1f} % of the cases, and those in the second half in {late:.1f} %." in text
    first, *others = recorded()["halves"]
    assert f"Then {100 * np.mean(first['after']):.1f} % are possible (" in text
    after, late = ([f"{100 * np.mean(each[part]):.1f}" for each in others] for part in ("after", "late"))
    assert f"it is {after[0]} and {after[1]} %, where the second halves had {late[0]} and {late[1]}." in text


def test_the_program_itself_makes_sense():
    begun, told = sense_record.beginnings(), sense_record.told()
    assert sense_record.judged(begun, told) == recorded()["ways"]["the program itself"][0]


def test_the_stories_that_are_shown_are_as_possible_as_they_look():
    shares = {}
    for way, story in recorded()["shown"].items():
        assert story.startswith(sense_record.beginnings()[0])
        shares[way] = np.mean([possible for _, possible in sense_record.sentences(story)])
    assert shares["temperature 2"] < 0.6 < shares["temperature 1"]


def test_an_impossible_sentence_and_one_said_before_are_counted():
    start = ". Anna is in the hall ."
    asked = "where is Anna ? hall ."
    story = f"{start} Anna is in the cellar . {asked} Anna goes to the cellar . Anna goes to the hall . {asked}"
    found = sense_record.judged([start], [story])
    expected = {"sentences": 5, "possible": 0.8, "early": 0.6667, "late": 1.0, "answers": 1.0, "again": 0.2}
    assert found == expected


def test_greedy_search_writes_what_was_recorded():
    (model, tokenizer), begun = pf.load_pretrained("stories"), sense_record.beginnings()
    found = sense_record.judged(begun, sense_record.written(model, tokenizer, {"temperature": 0.0}, 0, begun))
    (expected,) = recorded()["ways"]["greedy"]
    for part in ("possible", "answers", "again"):
        assert found[part] == pytest.approx(expected[part], abs=0.02), part
