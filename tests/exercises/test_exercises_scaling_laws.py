"""The exercises of the chapter `scaling_laws`, beyond what `test_exercises_mistakes` tests of all."""

import re

import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_scaling_laws import misfit_by, split_by


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("best_split", lambda *given: split_by()(*given).T, r"shape \(2, 3\); expected"),
        ("best_split", lambda *given: split_by()(*given) + 1, r"The largest difference is at \(\d, \d\)"),
        ("huber_misfit", lambda *given: misfit_by()(*given) + 1, r"It is \d\.\d+ instead of \d"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))
