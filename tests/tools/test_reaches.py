"""How far gradients reach in models as they start: the record, its card, and what chapter 13 says of it."""

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


@pytest.mark.parametrize("kind", ["rnn", "gated"])
def test_a_model_that_starts_anew_reaches_as_far_as_recorded(kind):
    found = reaches_record.powers_of(kind, seed=1)
    assert found[0] == 0  # relative to the last input itself
    np.testing.assert_allclose(found, pf.data.load_record("reaches")[kind][1], atol=0.02)


def test_what_the_chapter_says_of_reaches_is_so():
    mean = {kind: np.mean(powers, axis=0) for kind, powers in pf.data.load_record("reaches").items()}
    (chapter,) = (MODELS.parent / "chapters").glob("*_relations.md")
    text = " ".join(chapter.read_text(encoding="utf-8").split())
    assert "40 steps back this network is still ahead of the decoders" in text
    assert mean["rnn"][40] > max(mean["modern"][40], mean["classic"][40])
    assert "decoders' are small, but do not fall" in text
    assert min(mean[kind][1:].min() for kind in ("classic", "modern")) > -2
    assert all(mean[kind][90] > mean[kind][10] - 0.5 for kind in ("classic", "modern"))
    assert "falls least" in text
    assert mean["gated"][90] > mean["lstm"][90]
    assert mean["gru"][90] < mean["lstm"][90] < mean["rnn"][90]
