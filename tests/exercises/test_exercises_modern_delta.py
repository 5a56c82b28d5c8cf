"""The exercise `delta_rule` of the chapter `modern`, beyond what `test_exercises_mistakes` tests of all."""

import re

import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_modern_delta import by_matrices


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda queries, keys, values, betas, factors: values, "You return values unchanged"),
        (lambda *given: 2 * by_matrices()(*given), "Every number is 2 times"),
        (lambda *given: by_matrices()(*given)[1:], r"expected \(seq, d_v\) = \(6, 4\)"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("delta_rule", in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    first = complaint("delta_rule", in_numpy(by_matrices(length=0.0, first="neither"))).splitlines()[0]
    assert "never shrinks" in first
    assert "not brought to a length of 1" in first
