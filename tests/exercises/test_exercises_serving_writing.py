"""The exercise `min_p` of the chapter `serving`, beyond what `test_exercises_mistakes` tests of all."""

import re

import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_serving_writing import cut


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda *given: cut()(*given)[None], r"shape \(1, \d\); expected"),
        (lambda *given: cut()(*given) + 1, r"The largest difference is at"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("min_p", in_numpy(function)))
