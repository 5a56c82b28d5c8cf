"""The exercise `sink_weights` of the chapter `modern`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_modern_walk import in_one_row

import plainformer as pf


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda scores, sinks: in_one_row(scores, sinks).swapaxes(1, 2), r"shape \(3, 6, 4\); expected"),
        (lambda scores, sinks: in_one_row(scores, sinks) + 0.1, r"The largest difference is at \(\d, \d, \d\)"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("sink_weights", in_numpy(function)))


def test_the_packages_function_passes():
    pf.exercises.check("sink_weights", pf.attention.softmax_with_sink)


def test_the_readers_of_these_tests_agree_with_the_package():
    scores, sinks = np.random.default_rng(0).normal(size=(2, 3, 4)), np.array([0.5, -1.0])
    found = pf.attention.softmax_with_sink(scores.astype(np.float32), sinks.astype(np.float32))
    np.testing.assert_allclose(found, in_one_row(scores, sinks), rtol=1e-5)
