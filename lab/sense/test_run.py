"""What the decoder of stories writes is as often possible as recorded."""

from functools import cache

import pytest

import plainformer as pf
from lab.sense import run as sense_run

recorded = cache(lambda: pf.data.load_record("sense"))


def test_the_program_itself_makes_sense():
    begun, told = sense_run.beginnings(), sense_run.told()
    assert sense_run.judged(begun, told) == recorded()["ways"]["the program itself"][0]


def test_an_impossible_sentence_and_one_said_before_are_counted():
    start = ". Anna is in the hall ."
    asked = "where is Anna ? hall ."
    story = f"{start} Anna is in the cellar . {asked} Anna goes to the cellar . Anna goes to the hall . {asked}"
    found = sense_run.judged([start], [story])
    expected = {"sentences": 5, "possible": 0.8, "early": 0.6667, "late": 1.0, "answers": 1.0, "again": 0.2}
    assert found == expected


def test_greedy_search_writes_what_was_recorded():
    (model, tokenizer), begun = pf.load_pretrained("stories"), sense_run.beginnings()
    found = sense_run.judged(begun, sense_run.written(model, tokenizer, {"temperature": 0.0}, 0, begun))
    (expected,) = recorded()["ways"]["greedy"]
    for part in ("possible", "answers", "again"):
        assert found[part] == pytest.approx(expected[part], abs=0.02), part
