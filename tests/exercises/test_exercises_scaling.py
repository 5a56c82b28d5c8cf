"""The exercises of the chapter `scaling`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_scaling import loss_of, summands


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("summed_product", lambda *given: summands(*given) + 1, r"The largest difference is at \(\d, \d, \d\)"),
        ("summed_product", lambda *given: summands(*given).transpose(0, 2, 1), r"shape \(2, 10, 4\)"),
        ("batch_loss", lambda *given: loss_of(*given) + 1, r"It is \d\.\d+ instead of \d"),
        ("batch_loss", lambda losses, is_token: (losses * is_token).sum(axis=1), r"shape \(2,\); expected"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_a_device_may_have_no_token():
    by_device = in_numpy(lambda losses, is_token: np.average(losses.mean(axis=1), weights=is_token.sum(axis=1)))
    assert "batch_loss" in complaint("batch_loss", by_device)
