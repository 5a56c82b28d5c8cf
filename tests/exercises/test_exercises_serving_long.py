"""The exercise of the chapter `serving` on long texts, beyond what `test_exercises_mistakes` tests of all."""

import re

import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_serving_long import parts_by


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda *given: parts_by()(*given)[:-1], r"shape \(3,\); expected"),
        (lambda *given: parts_by()(*given) + 1, r"not right yet for four pairs, with speeds \(4,\)"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("by_parts", in_numpy(function)))
