"""One thing and its names in many languages."""

import zlib

import pytest

from plainformer.data.languages import plain
from plainformer.data.things import thing_splits


@pytest.fixture(scope="module")
def things():
    return thing_splits()


def test_things_have_their_different_names_in_one_list():
    things = thing_splits(["de", "fr", "nl", "sv"])
    assert things.test["territory NO"] == ["Norwegen", "Norvège", "Noorwegen", "Norge"]
    assert things.training["city Europe/Vienna"] == ["Wien", "Vienne", "Wenen"]  # the Swedish for it is Wien as well
    assert things.training["unit length-kilometer"] == ["Kilometer", "kilomètres"]


def test_things_held_out_are_those_of_the_names(things):
    held_out = {concept for concept in things.test if zlib.crc32(concept.encode()) % 4}
    assert not held_out
    kinds = {"territory", "language", "month", "weekday"}
    assert {concept.split()[0] for concept in things.test} == kinds
    assert {c.split()[0] for c in things.training} == kinds | {"currency", "script", "unit", "city", "zone"}
    learnt = [concept for concept in things.training if concept.split()[0] in kinds]
    assert learnt
    assert all(zlib.crc32(concept.encode()) % 4 for concept in learnt)


def test_no_name_to_learn_from_contains_one_held_out(things):
    held_out = [text.casefold() for names in things.test.values() for text in names if len(text) >= 4]
    learnt = "\n".join(text.casefold() for names in things.training.values() for text in names)
    assert not [text for text in held_out if text in learnt]


def test_each_name_stands_once_in_its_list(things):
    for names in (*things.training.values(), *things.test.values()):
        assert len(names) == len({text.casefold() for text in names}) >= 2
        assert names == [plain(text) for text in names]
    assert 1_500 < len(things.training) < 2_500
    assert 200 < len(things.test) < 300


@pytest.mark.usefixtures("unchecked")
def test_things_bad_input():
    with pytest.raises(ValueError, match=r"^Babel does not know the language 'klingon'"):
        thing_splits(["en", "klingon"])
