"""Packing, copies and leaks give a model to read what the record says."""

from itertools import pairwise

import numpy as np
import pytest

import plainformer as pf
from lab.recipes_data import run as script

RECORDED = pf.data.load_record("recipes_data")


@pytest.fixture
def few(monkeypatch, tmp_path):
    """A few stories of each length, which are kept nowhere else."""
    stories = [[0, *(1 + n % 39 for n in range(length - 1))] for length in script.LENGTHS]
    documents = [[*story, script.END] for story in 3 * stories]
    monkeypatch.setattr(script, "documents", lambda seed, of_each=3: documents)
    monkeypatch.setattr(script, "KEPT", tmp_path)
    monkeypatch.setattr(script, "SLOTS", 30)
    monkeypatch.setattr(script, "packed", script.packed.__wrapped__)
    return documents


@pytest.mark.parametrize("way", script.WAYS)
def test_each_way_of_packing_reads_the_same_pairs_but_at_borders(few, way):
    windows = script.packed(0, way)
    assert windows.inputs.shape[1] == windows.targets.shape[1] == script.WINDOW
    read = np.asarray(windows.counts)
    pairs = set(zip(windows.inputs[read].tolist(), windows.targets[read].tolist(), strict=True))
    within = {pair for ids in few for pair in pairwise(ids)}
    assert pairs - within == ({(script.END, 0)} if way == "joined" else set())
    if way != "joined":
        assert read.sum() == sum(len(ids) - 1 for ids in few)
        assert pairs == within
    masked = isinstance(windows, pf.data.PackedWindows)
    assert masked == way.endswith("masks")
    if way.startswith(("whole", "one")):
        begins = (windows.inputs == 0) & read
        assert begins.sum() == len(few)


def test_more_rows_read_as_many_words_as_full_windows():
    places = np.mean(script.LENGTHS) / script.WINDOW
    assert abs(script.MORE_ROWS * places / script.ROWS - 1) < 0.02
    assert abs(RECORDED["packing"]["read"]["one a row"] - places) < 1e-4


def test_copies_come_so_often_and_leaks_too(few, monkeypatch):
    stories = np.arange(script.SLOTS)[:, None] + 100 * np.arange(script.WINDOW + 1)
    monkeypatch.setattr(script, "fresh", lambda seed: stories)
    for times, different in ((1, 30), (5, 3 + 15), (100, 1 + 15)):
        read = script.with_copies(0, times, 0.5)
        assert read.shape == stories.shape
        assert len({tuple(row) for row in read}) == different
        assert (read[15:] == stories[15:]).all()
    monkeypatch.setattr(script, "told", lambda *_: -1 - np.arange(4)[:, None] + 0 * stories[:1])
    monkeypatch.setattr(script, "GROUP", 1)
    read = script.with_leaks(0)
    assert len(read) == script.SLOTS
    assert [int((read[:, 0] == -1 - place).sum()) for place in range(4)] == list(script.LEAKED)


def test_stories_in_turn_come_once_before_any_comes_again():
    stories = np.arange(48)[:, None] + np.zeros((48, 3), int)
    batch_at = script.in_turn(stories, 0)
    first = np.concatenate([batch_at(step).inputs[:, 0] for step in range(3)])
    again = np.concatenate([batch_at(step).inputs[:, 0] for step in range(3, 6)])
    assert sorted(first) == sorted(again) == list(range(48))
    assert (first != again).any()


def test_whoever_knows_the_rules_is_not_above_and_who_knows_nothing_is():
    told = pf.data.stories(3, 9, seed=4)
    judged = script.judged([script.VOCABULARY.encode(story) for story in told])
    flat = pf.Decoder(script.config_of(8), key=script.jax.random.key(0))
    nothing = script.jax.tree.map(lambda leaf: 0 * leaf, flat)
    expected = np.log(script.END) - np.mean([pf.data.word_surprises(story).mean() for story in told])
    assert script.mean_above(nothing, judged) == pytest.approx(expected, abs=1e-3)


def test_paragraphs_that_occur_twice_and_held_out_ones_that_are_known_are_counted():
    words = [f"w{number}" for number in range(60)]
    one, other, long = (" ".join(words[part]) for part in (slice(0, 20), slice(30, 45), slice(2, 30)))
    found = script.in_splits([one, other.upper()], [long, other, " ".join(words[45:])])
    assert found["paragraphs"] == [2, 3]
    assert (found["exact"], found["near"], found["in pairs"], found["near across"]) == (1, 1, 2, 1)
    assert (found["with a known run"], found["known throughout"]) == (2, 1)
    letters = script.in_letters(["Anna", "abcdefghijklmno"], ["anna", "xbcdefghijklmno", "ben"])
    assert letters == {"texts": [2, 3], "equal": 1, "of 13 letters": 1, "with a known run": 1}
