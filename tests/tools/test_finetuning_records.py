"""The recorded trainings of chapter 17: their cards, what the figure shows of them, and what can be redone."""

import json

import numpy as np
import preferring_figure
import pytest
import train_answering
import train_preferring
import train_verbs_last
from book import ROOT

import plainformer as pf

RECORDS = {"verbs_last": train_verbs_last, "answering": train_answering, "preferring": train_preferring}


@pytest.mark.parametrize("name", RECORDS)
def test_cards_say_what_was_recorded(name):
    card = (ROOT / "models" / f"{name}.md").read_text(encoding="utf-8")
    assert RECORDS[name].card(pf.data.load_record(name)) == card


def test_the_figure_has_the_recorded_runs():
    shown = json.loads(preferring_figure.NUMBERS.read_text("utf-8"))
    assert shown == preferring_figure.numbers()
    assert all(len(run["texts"]) == 3 for run in [*shown["tuned"], *shown["longer"]])


def test_the_lowest_loss_is_that_of_the_old_order_and_the_untuned_teller_is_as_recorded():
    recorded, (stored, _) = pf.data.load_record("verbs_last"), pf.load_pretrained("stories")
    assert train_verbs_last.texts("verbs last", train_verbs_last.NUM_KEPT_BACK, 1000)[2] == pytest.approx(
        recorded["least"], abs=1e-4
    )
    assert train_verbs_last.above(stored, "verbs last") == pytest.approx(recorded["untuned"]["verbs last"], abs=0.01)


def test_a_listener_prefers_as_bradley_and_terry_say():
    one, other = np.array([3.0, 0.0]), np.array([1.0, 0.0])
    np.testing.assert_allclose(train_preferring.share_of_first(one, other), [1 / (1 + np.exp(-2)), 0.5])


def test_templates_and_losses_differ_in_what_counts():
    told = pf.data.dialogues(5, train_answering.NUM_WORDS, seed=3)
    texts = [train_answering.dialogue_ids(each) for each in told]
    counts = {loss: train_answering.windows(texts, loss).is_token.sum() for loss in train_answering.LOSSES}
    assert counts["answers"] == 2 * 5
    assert counts["end as padding"] == 5
    assert counts["questions, too"] == sum(len(each.question.split()) + 3 for each in told)
    assert counts["all tokens"] == sum(len(text) - 1 for text in texts)
    assert counts["padding, too"] == 2 * 5 + sum(train_answering.LENGTH + 1 - len(text) for text in texts)
