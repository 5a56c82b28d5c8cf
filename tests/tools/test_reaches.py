"""How far gradients reach in models as they start: the record, its card, and what chapter 13 says of it."""

import math
from pathlib import Path

import numpy as np
import pytest
import reaches_record

import plainformer as pf

MODELS = Path(__file__).resolve().parents[2] / "models"


def test_the_card_says_what_was_recorded():
    recorded = pf.data.load_record("reaches")
    assert reaches_record.card(recorded) == (MODELS / "reaches.md").read_text(encoding="utf-8")
    assert list(recorded) == list(reaches_record.KINDS)
    assert all(len(powers) == reaches_record.LENGTH for each in recorded.values() for powers in each)


@pytest.mark.parametrize("kind", ["rnn", "decoder"])
def test_a_model_that_starts_anew_reaches_as_far_as_recorded(kind):
    found = reaches_record.powers_of(kind, seed=1)
    assert found[0] == 0  # relative to the last input itself
    np.testing.assert_allclose(found, pf.data.load_record("reaches")[kind][1], atol=0.02)


def test_what_the_chapter_says_of_reaches_is_so():
    mean = {kind: np.mean(powers, axis=0) for kind, powers in pf.data.load_record("reaches").items()}
    (chapter,) = (MODELS.parent / "chapters").glob("*_relations.md")
    text = " ".join(chapter.read_text(encoding="utf-8").split())
    assert "40 steps back this network is still ahead of the decoder" in text
    assert mean["rnn"][40] > mean["decoder"][40]
    assert "decoder's is small, but does not fall" in text
    assert mean["decoder"][1:].min() > -2
    assert abs(mean["decoder"][90] - mean["decoder"][10]) < 0.5
    assert "We measured more" in text
    assert math.log10(0.73) * 90 < mean["gru"][90] < mean["lstm"][90] < mean["rnn"][90]
