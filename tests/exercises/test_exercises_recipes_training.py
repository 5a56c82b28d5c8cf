"""The exercise of the chapter `recipes` on Muon, beyond what `test_exercises_mistakes` tests of all."""

import re

import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_recipes_training import by_steps


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda *given: by_steps()(*given).T, r"shape \(4, 3\); expected"),
        (lambda *given: by_steps()(*given) + 1, r"not right yet for a wide matrix"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("newton_schulz", in_numpy(function)))
