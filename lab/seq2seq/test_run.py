"""Settings of the models of dates are chosen on pairs that are held back from training."""

import numpy as np

import plainformer as pf
from lab.seq2seq import held_back, run as seq2seq_run


def test_pairs_are_held_back_as_the_test_holds_them_out():
    training = pf.data.date_splits().training
    parts = held_back.held_back(training)
    years, languages = (
        [{get(pair) for pair in part} for part in parts] for get in (year_of, lambda pair: pair.language)
    )
    assert not years[0] & years[1]
    assert not languages[0] & languages[2]
    assert languages[1] == languages[0]
    assert 0.05 < len(years[1]) / len(years[0] | years[1]) < 0.2
    dropped = {*training} - {pair for part in parts for pair in part}
    assert not dropped


def year_of(pair) -> str:
    return pair.target[:4]


def test_the_rate_of_the_longer_training_is_the_best_that_was_tried_and_lies_between_the_others():
    longer = pf.data.load_record("seq2seq")["longer"]
    losses = {float(rate): np.mean([*each.values()]) for rate, each in longer["tried"].items()}
    assert [*losses] == [*seq2seq_run.RATES]
    assert min(losses, key=losses.get) == longer["rate"]
    assert min(losses) < longer["rate"] < max(losses)
