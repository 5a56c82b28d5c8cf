"""The recorded answers of chapter 21 on long texts: the card, and what can be redone without a training."""

import numpy as np
import pytest
import train_long
from book import ROOT

import plainformer as pf

RECORDED = pf.data.load_record("long")


def test_card_says_what_was_recorded():
    assert train_long.card(RECORDED) == (ROOT / "models" / "long.md").read_text(encoding="utf-8")


def test_every_way_was_tried_with_every_seed():
    names = {"as it is", *train_long.ways(128)}
    at_once, further = RECORDED["stories"]["at once"], RECORDED["stories"]["further"]
    for of_width in RECORDED["look"].values():
        assert of_width.keys() == names | train_long.OTHERS.keys()
    at_once = dict(at_once)
    assert len(at_once.pop(train_long.LARGER)) == 1
    assert at_once.keys() == names | {"window of 128", "ALiBi"}
    assert {len(seeds) for names in (*RECORDED["look"].values(), at_once) for seeds in names.values()} == {3}
    assert list(further) == train_long.AFTER_MORE
    assert {name for name, seeds in further.items() if len(seeds) == 2} <= set(train_long.AGAIN)


@pytest.mark.parametrize("scaling", train_long.ways(64).values())
def test_speeds_as_arrays_turn_like_the_package(scaling):
    rows = np.random.default_rng(0).normal(size=(70, 8)).astype(np.float32)
    expected = pf.RotaryPositions(scaling=scaling).rotate(rows)
    np.testing.assert_allclose(train_long.turning(8, scaling).rotate(rows), expected, rtol=0, atol=1e-5)


def test_needles_are_possible_stories_with_one_answer():
    ids, ends, right = train_long.needles(128)
    for row, end, answer in zip(ids, ends, right, strict=True):
        chances = pf.data.next_words(train_long.growing.VOCABULARY.decode(row[: end + 1].tolist()))
        assert [train_long.growing.VOCABULARY.encode(word)[0] for word in chances] == [answer]
        assert abs(end - 3 - 128) <= 3


def test_the_machine_with_linear_biases_is_the_one_of_the_staircase():
    """Its nats on the first 128 words of long stories are near those of its own record, on stories of 128 words."""
    above = [seed["above"][0] for seed in RECORDED["stories"]["at once"]["ALiBi"]]
    recorded = [row["above"] for row in pf.data.load_record("staircase")["rows"]["positions"]]
    np.testing.assert_allclose(above, recorded, atol=0.015)
