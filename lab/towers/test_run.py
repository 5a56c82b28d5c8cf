"""Numbers that are held out are never shown, and digits are told apart as recorded."""

import numpy as np
import pytest

import plainformer as pf
from lab.towers import run as towers


def test_numbers_that_are_held_out_are_in_no_batch():
    training = pf.data.digits().training
    images, spelt = towers.pairs_at(training, 0)(3)
    ids, is_letter = np.asarray(spelt).argmax(axis=2), np.asarray(spelt).any(axis=2)
    assert images.shape == (64, 8, 16, 1)
    written = [towers.LETTERS.decode(row[:length]) for row, length in zip(ids, is_letter.sum(axis=1), strict=True)]
    numbers = dict(zip(towers.NAMES, [*towers.NUMBERS] * 3, strict=True))
    assert not {numbers[name] for name in written} & set(towers.held_out().tolist())
    assert len({numbers[name] for name in written}) == 64


def test_digits_told_apart_are_named_as_recorded():
    assert towers.told() == pytest.approx(pf.data.load_record("towers")["told"], abs=0.005)


def test_a_regression_on_the_same_pairs_is_as_good_as_recorded():
    training, test = pf.data.digits()
    found = pf.data.load_record("towers")["by parts"]
    machines = towers.by_parts(training, towers.SEEDS[0], np.array([]), *found["setting"])
    shares = towers.shares_by_parts(machines, test, towers.held_out())
    assert shares == pytest.approx(found["runs"][0]["new"], abs=0.01)


def test_the_setting_of_the_regression_is_the_best_on_what_is_kept_back():
    found = pf.data.load_record("towers")["by parts"]
    longest, gamma = found["setting"]
    assert max(found["tried"], key=lambda each: sum(found["tried"][each])) == f"{longest}, {gamma:g}"
    assert min(towers.LONGEST) < longest < max(towers.LONGEST)
    assert min(towers.GAMMAS) < gamma < max(towers.GAMMAS)


def test_regression_is_ahead_in_each_language_and_with_each_seed():
    found = pf.data.load_record("towers")
    ours, theirs = ([run["new"] for run in runs] for runs in (found["runs"], found["by parts"]["runs"]))
    for place in range(len(towers.LANGUAGES)):
        assert max(run[place] for run in ours) < min(run[place] for run in theirs)
