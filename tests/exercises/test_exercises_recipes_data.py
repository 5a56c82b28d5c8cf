"""The exercise `document_mask` of the chapter `recipes`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_recipes_data import in_one_line


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda documents: np.asarray(in_one_line(documents))[None], r"shape \(1, \d, \d\); expected"),
        (lambda documents: 2 * np.asarray(in_one_line(documents)), r"document_mask"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("document_mask", in_numpy(function)))
