"""The vision transformer has the accuracy that was recorded, and is chosen by digits of its own."""

import numpy as np
import pytest

import plainformer as pf
from lab.vision import run as vision_run
from plainformer.models.stored import load_pretrained


def test_vision_transformer_has_the_accuracy_that_was_recorded():
    training, test = pf.data.digits()
    model, tokenizer = load_pretrained("vision")
    assert tokenizer is None
    assert model.config == vision_run.VISION
    accuracy = vision_run.vision_accuracy(model, test)
    recorded = pf.data.load_record("vision")["accuracy"]
    assert accuracy == pytest.approx(recorded, abs=0.003)  # one image more or fewer, on another machine
    assert accuracy > 0.98
    images, labels, *_ = vision_run.shifted_batches(training, batch_size=7)(0)
    assert images.shape == (7, 8, 8, 1)
    assert labels.shape == (7,)


def test_every_fifth_digit_of_each_class_is_kept_to_choose_by():
    training = pf.data.digits().training
    rest, fold = vision_run.fold_of(training)
    assert len(rest.labels) + len(fold.labels) == len(training.labels)
    of_class, kept = (np.bincount(np.asarray(each.labels)) for each in (training, fold))
    assert (kept == of_class // 5).all()
