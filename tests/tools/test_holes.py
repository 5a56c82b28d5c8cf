"""What the encoders make of one hidden letter: the record, its card, and what chapter 09 says of it."""

import re
from functools import cache
from pathlib import Path

import holes_record
import numpy as np
import pytest

import plainformer as pf

MODELS = Path(__file__).resolve().parents[2] / "models"
recorded = cache(lambda: pf.data.load_record("holes"))


def test_the_card_says_what_was_recorded():
    assert holes_record.card(recorded()) == (MODELS / "holes.md").read_text(encoding="utf-8")


def test_the_first_letters_surprise_encoder_and_counting_as_recorded():
    splits, number = pf.data.name_splits(), 12
    assert len(recorded()["names"]["encoder"]) == len(holes_record.asked_of_names(splits))
    for name, nats in holes_record.of_names(splits, number).items():
        # The names are those of this Babel, whose versions differ a little.
        np.testing.assert_allclose(nats, recorded()["names"][name][:number], atol=0.02)


def test_the_head_that_looks_at_other_names_is_the_recorded_one_on_fewer_lines():
    found, stored = holes_record.of_things(pf.data.thing_splits(), number=80), recorded()["things"]
    assert (found["layer"], found["head"]) == (stored["layer"], stored["head"])
    assert found["weight"] == pytest.approx(stored["weight"], abs=0.1)
    assert found["even"] == pytest.approx(stored["even"], abs=0.03)


def test_places_of_the_same_letter_are_in_other_names_only():
    same = holes_record.same_letter_elsewhere([("Anna, Ana, Hanna", 1), ("Oslo, Rom", 7)])
    assert np.flatnonzero(same[0]).tolist() == [7, 13, 14]
    assert np.flatnonzero(same[1]).tolist() == [3]


def test_what_the_chapter_says_of_hidden_letters_was_recorded():
    (chapter,) = (MODELS.parent / "chapters").glob("*_encoder.md")
    text = re.sub(r"\s+", " ", chapter.read_text(encoding="utf-8"))
    names, things = recorded()["names"], recorded()["things"]
    assert f"head gives it {things['weight']:.2f} of its weight" in text
    assert f"one letter of each of {len(names['encoder'])} names" in text
    assert np.mean(names["5-gram"]) < np.mean(names["encoder"]) - 0.3
