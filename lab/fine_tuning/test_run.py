"""Fine-tuning reaches what was recorded, and so do the answers that were kept."""

import jax
import numpy as np
import pytest

import plainformer as pf
from lab.fine_tuning import frozen, run as fine_tuning_run
from plainformer.models.stored import load_pretrained

record = pf.data.load_record


def test_fine_tuning_reaches_what_was_recorded():
    """One of the cases over again: the first draw of five labels."""
    recorded, splits = record("fine_tuning"), pf.data.name_splits()
    languages = recorded["languages"]
    learning, test = (fine_tuning_run.Names(part, languages) for part in (splits.training, splits.test))
    start = fine_tuning_run.classifier(load_pretrained("encoder")[0].encoder, len(languages), 0)
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        model = fine_tuning_run.fine_tuned(start, learning, 5, 0, fine_tuning_run.RATES["pre-trained"][5])
    found = 100 * np.mean(fine_tuning_run.answers(model, test) == test.labels)
    assert found == pytest.approx(recorded["accuracy"]["pre-trained"]["5"][0], abs=2)


def test_answers_about_languages_have_the_recorded_accuracy():
    recorded, test = record("fine_tuning"), pf.data.name_splits().test
    if len(test) == recorded["num_test"]:  # the names depend on Babel's version
        answers = [recorded["languages"][ord(letter) - ord("a")] for letter in recorded["answers"]]
        right = [answer == name.language for answer, name in zip(answers, test, strict=True)]
        assert 100 * np.mean(right) == pytest.approx(recorded["accuracy"]["pre-trained"]["100"][-1], abs=0.01)


def test_a_linear_map_of_frozen_means_reaches_what_was_recorded():
    recorded, splits = record("fine_tuning"), pf.data.name_splits()
    learning, test = (fine_tuning_run.Names(part, recorded["languages"]) for part in (splits.training, splits.test))
    rows, encoder = fine_tuning_run.labelled(learning, 5, 0), load_pretrained("encoder")[0].encoder
    found = {way: 100 * np.mean(frozen.right_by(way, encoder, 0, learning, rows, test)) for way in frozen.WAYS}
    assert found == pytest.approx({way: recorded["accuracy"][way]["5"][0] for way in frozen.WAYS}, abs=1)
