"""What the models of dates are compared with finds out what was recorded, and is as good."""

import numpy as np
import pytest

import plainformer as pf
from lab.date_opponents import run as opponents
from lab.date_opponents.copying import ByLikeness, CopyingTranslator
from lab.date_opponents.linear import LinearClassifiers, among_classes
from plainformer.data.dates import DatePair


def recorded() -> dict:
    return pf.data.load_record("date_opponents")


@pytest.mark.parametrize("name", ["letters", "likeness"])
def test_counting_finds_where_numbers_go_and_is_as_good_as_recorded(name):
    splits, found = pf.data.date_splits(), recorded()
    counting = opponents.fitted(name, splits.training, found[name]["setting"])
    assert {str(length): [*copy] for length, copy in counting.copies.items()} == found["copies"]
    assert found["copies"] == {"1": [2, "0"], "2": [2, ""], "4": [0, ""]}
    assert opponents.shares(counting.translate, splits) == pytest.approx(found[name]["right"], abs=0.002)


def test_counting_has_as_many_dates_right_as_the_rule():
    assert recorded()["likeness"]["right"] == pytest.approx(recorded()["rule"], abs=1e-4)


def test_numbers_are_copied_and_words_are_looked_up_or_taken_for_the_most_similar():
    pairs = [DatePair("Mai 1987, 3.", "1987-05-03", "x"), DatePair("17. juni 2001", "2001-06-17", "x")] * 3
    counting = CopyingTranslator(pairs, "by its length", lambda: ByLikeness(0.9))
    assert counting.copies == {4: (0, ""), 1: (2, "0"), 2: (2, "")}
    assert counting.translate(["8. Mayo 1492", "1066 junio 30"]) == ["1492-05-08", "1066-06-30"]


def test_linear_classifiers_know_a_letter_by_the_classes_around_it():
    assert {"2 aa5", "0 5", "1 a5 "} <= {*among_classes("mai5")}
    pairs = [DatePair(f"{a} x {b}", f"{b}-{a}", "x") for a in range(1, 10) for b in range(10, 100)]
    linear = LinearClassifiers(pairs[::3], 3, True, 1.0)
    assert opponents.right(linear.translate, pairs[1::3]) > 0.99


def test_settings_of_opponents_are_the_best_on_what_is_held_back():
    for name in opponents.SIMPLE:
        found = recorded()[name]
        best = max(found["tried"], key=lambda setting: np.mean([*found["tried"][setting].values()]))
        assert found["setting"] == best
    recurrent = recorded()["GRU"]
    rate, decay = recurrent["setting"]
    assert min(recurrent["tried"], key=lambda setting: sum(recurrent["tried"][setting])) == f"{rate:g}, {decay:g}"


def test_the_rule_of_the_chapter_is_as_good_as_recorded():
    assert opponents.rule(pf.data.date_splits()) == recorded()["rule"]


def test_no_answer_of_the_test_occurs_in_training():
    training, *parts = pf.data.date_splits()
    known = {pair.target for pair in training}
    assert not any(pair.target in known for part in parts for pair in part)
