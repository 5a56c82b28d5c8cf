"""The translator of numbers is as good as recorded, and so is counting."""

import pytest

import plainformer as pf
from lab.numbers import numbers_by_counting, run as numbers_run
from lab.seq2seq import run as seq2seq_run
from plainformer.models.stored import load_pretrained


def test_numbers_are_translated_as_recorded():
    splits = pf.data.number_splits()
    model, vocabulary = load_pretrained("numbers")
    length = numbers_run.LENGTH
    assert model.config == seq2seq_run.seq2seq_config(vocabulary, context_len=length, source_len=length)
    counting = numbers_by_counting.CountingTranslator(splits.training)
    assert counting.words("vierunddreißigtausendachthundert") == ["four", "thirty", "thousand", "eight", "hundred"]
    assert counting.translate("vierunddreißigtausendachthundert") == "thirty-four thousand, eight hundred"
    recorded = pf.data.load_record("numbers")["all pairs"]["new_combination"]
    share = seq2seq_run.match(model, vocabulary, splits.new_combination)
    assert share == pytest.approx(recorded["stored"], abs=0.0041)  # two texts of 500
    assert min(recorded["stored"], recorded["mean"]) > recorded["counted"] + 0.03


def test_on_numbers_of_six_digits_counting_is_far_ahead_with_each_seed():
    longer = pf.data.load_record("numbers")["all pairs"]["longer"]
    assert longer["counted"] > 0.9
    assert max(longer["seeds"]) < 0.01


def test_after_a_longer_training_each_seed_is_ahead_on_new_combinations_and_knows_no_six_digits():
    recorded = pf.data.load_record("numbers")
    counted, longer = recorded["all pairs"]["new_combination"]["counted"], recorded["longer"]
    rates = [*map(float, longer["tried"])]
    assert min(rates) < longer["rate"] < max(rates)
    assert min(each["new_combination"] for each in longer["runs"]) > counted + 0.03
    assert max(each["longer"] for each in longer["runs"]) < 0.01
