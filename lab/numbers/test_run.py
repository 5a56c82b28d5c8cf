"""The translator of numbers is as good as its card states, and so is counting."""

import re

import pytest

import plainformer as pf
from lab.numbers import numbers_by_counting, run as numbers_run
from lab.records import LAB
from lab.seq2seq import run as seq2seq_run
from plainformer.models.stored import load_pretrained


def test_numbers_are_translated_as_the_card_states():
    splits = pf.data.number_splits()
    model, vocabulary = load_pretrained("numbers")
    length = numbers_run.LENGTH
    assert model.config == seq2seq_run.seq2seq_config(vocabulary, context_len=length, source_len=length)
    counting = numbers_by_counting.CountingTranslator(splits.training)
    assert counting.words("vierunddreißigtausendachthundert") == ["four", "thirty", "thousand", "eight", "hundred"]
    assert counting.translate("vierunddreißigtausendachthundert") == "thirty-four thousand, eight hundred"
    card = (LAB / "numbers" / "card.md").read_text(encoding="utf-8")
    row = re.search(r"\| new combination \| (\S+)% \| (\S+) % .*? \| (\S+)% \|", card)
    of_stored, of_seeds, of_counting = map(float, row.groups())
    share = seq2seq_run.match(model, vocabulary, splits.new_combination)
    assert 100 * share == pytest.approx(of_stored, abs=0.41)  # two texts of 500
    assert min(of_stored, of_seeds) > of_counting + 3
