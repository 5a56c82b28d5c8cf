"""The exercises of the chapter `notation`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
from exercise_checks import complaint

from plainformer.exercises.registry import load_exercise


def test_what_no_known_mistake_explains():
    message = complaint("attend_columns", lambda q, k, v: np.zeros((3, 3)))
    assert re.search(r"shape \(3, 3\); expected \(d_v, q_seq\) = \(2, 5\)", message)


def test_examples_by_hand():
    attend = load_exercise("attend_columns")
    inputs = attend.examples[0]
    root = np.e**0.5  # the scaled scores of the first query are 1 and 1/2, those of the second 0 and 1
    weights = np.array([[np.e / (np.e + root), 1 / (1 + np.e)], [root / (np.e + root), np.e / (1 + np.e)]])
    np.testing.assert_allclose(attend.answer(**inputs), inputs["values"] @ weights)
    linear = load_exercise("linear_columns")
    np.testing.assert_array_equal(linear.answer(**linear.examples[0]), [[11, 12], [20, 26]])
