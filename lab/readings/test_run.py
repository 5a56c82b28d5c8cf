"""The heads that copy a word are those of the record."""

import numpy as np
import pytest

import plainformer as pf
from lab.readings import run as readings_run
from plainformer.models.stored import load_pretrained


def test_heads_that_one_word_needs_are_those_that_a_hundred_need():
    expected = pf.data.load_record("readings")["copying"]
    found = readings_run.Copying(*load_pretrained("things_decoder"), num_words=8).measure()
    assert (*found["earlier"], *found["copier"]) == (*expected["earlier"], *expected["copier"])
    assert found["word"] == expected["word"]
    np.testing.assert_allclose(found["weights"], expected["weights"], atol=0.01)
    for name in ("first", "again", "shuffled", "without_earlier", "without_copier", "without_another"):
        assert found[name] == pytest.approx(expected[name], abs=1), name  # eight words of a hundred


def test_a_letter_of_a_made_up_word_costs_more_than_a_blind_guess():
    assert pf.data.load_record("readings")["copying"]["first"] > np.log(151)


def test_a_word_that_comes_again_costs_much_less_but_not_with_its_letters_in_another_order():
    first, again, shuffled = (pf.data.load_record("readings")["copying"][n] for n in ("first", "again", "shuffled"))
    assert again < 0.5 * first < 0.8 * first < shuffled
