"""The drafts of chapter 12: the record, its card, and what the chapter says of it."""

from pathlib import Path

import jax
import numpy as np
import pytest
import train_drafts

import plainformer as pf
from plainformer.models.low_precision import in_few_bytes

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("drafts")


def test_the_card_says_what_was_recorded(recorded):
    assert train_drafts.card(recorded) == (MODELS / "drafts.md").read_text(encoding="utf-8")
    steps_and_seeds = {(run["num_steps"], run["seed"]) for run in recorded["runs"]}
    assert len(steps_and_seeds) == len(train_drafts.STEPS) * len(train_drafts.SEEDS)


def test_a_draft_starts_to_learn_as_its_stored_losses_say(recorded):
    _, vocabulary = pf.load_pretrained("decoder")
    training = vocabulary.encode(pf.data.python_reference_splits()[0])
    (run,) = (run for run in recorded["runs"] if (run["num_steps"], run["seed"]) == (120, 1))
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        draft, first = train_drafts.trained(training, len(vocabulary), 120, 1)
    np.testing.assert_allclose(first, run["first"], atol=0.02)
    decoder, _ = pf.load_pretrained("decoder")
    prompts = train_drafts.beginnings(vocabulary.encode(pf.data.python_reference_splits()[1]))[:8]
    with jax.numpy_dtype_promotion("standard"):
        found = train_drafts.asked(decoder, draft, prompts, numbers=(4,))
    assert np.mean(found["calls"]["4"]) == pytest.approx(np.mean(run["calls"]["4"]), rel=0.15)


def test_fewer_bytes_cost_what_was_recorded(recorded):
    decoder, vocabulary = pf.load_pretrained("decoder")
    text = vocabulary.encode(pf.data.python_reference_splits()[1])
    held_out = pf.data.consecutive_windows(text, 128)
    losses = {"float32": decoder, "int8": in_few_bytes(decoder, "int8")}
    found = {name: pf.training.corpus_loss(model, held_out) for name, model in losses.items()}
    assert found["float32"] == pytest.approx(recorded["losses"]["float32"], abs=0.01)
    more = recorded["losses"]["int8"] - recorded["losses"]["float32"]
    assert found["int8"] - found["float32"] == pytest.approx(more, abs=2e-4)


def test_a_call_gives_one_letter_at_least_and_no_more_than_were_drafted_and_one(recorded):
    for run in [*recorded["runs"], recorded["itself"]]:
        for num_drafted in train_drafts.NUM_DRAFTED:
            assert 1 < train_drafts.letters_per_call([run], num_drafted) <= num_drafted + 1


def test_texts_are_as_surprising_as_those_of_the_decoder_alone(recorded):
    found = [run["surprise"] for run in recorded["runs"]]
    assert np.mean(found) == pytest.approx(recorded["alone"], abs=0.05)


def test_the_chapter_says_what_was_recorded(recorded):
    (chapter,) = (MODELS.parent / "chapters").glob("*_efficiency.md")
    text = " ".join(chapter.read_text(encoding="utf-8").split())
    longest = train_drafts.runs_of(recorded, 2000)
    four, eight = (train_drafts.letters_per_call(longest, num) for num in (4, 8))
    assert f"asked once for {four:.2f} letters with four drafted" in text
    assert f"eight in place of four gives {eight:.2f}, little more" in text
    drafts = [train_drafts.runs_of(recorded, num_steps) for num_steps in train_drafts.STEPS]
    found = [np.mean([run["surprise"] for run in runs]) for runs in [*drafts, [recorded["itself"]]]]
    assert f"by {recorded['alone']:.2f} nats in what it wrote alone" in text
    assert f"by {min(found):.2f} to {max(found):.2f} in what it wrote with a draft" in text
    losses = recorded["losses"]
    assert "changes by less than 0.0001 nats" in text
    assert max(abs(losses[name] - losses["float32"]) for name in ("int8", "bfloat16")) < 1e-4
