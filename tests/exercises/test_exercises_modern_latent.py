"""The exercise on latent attention of the chapter `modern`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_modern_latent import scores_by

from plainformer.exercises.registry import load_exercise


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda *given: scores_by()(*given)[0], r"shape \(5, 7\); expected"),
        (lambda *given: scores_by()(*given) + 1, r"The largest difference is at \(\d, \d, \d\)"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("absorbed", in_numpy(function)))


def test_the_first_example_by_hand():
    """The query (2, 1) goes down as (2, 2): with (1, 2) that makes 6, and 5 more; with (0, 1) it makes 2, and 3."""
    exercise = load_exercise("absorbed")
    np.testing.assert_allclose(exercise.answer(**exercise.examples[0]), [[[11 / 2**0.5, 5 / 2**0.5]]])
