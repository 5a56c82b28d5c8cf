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
