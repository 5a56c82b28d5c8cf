"""The exercise on experts, beyond what `test_exercises_mistakes` tests of all."""

import re

import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_modern_experts import balance_in_loops, mean_weight, right, routed, share


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda *given: routed(right)(*given).T, r"shape \(4, 5\); expected"),
        (lambda *given: routed(right)(*given)[:, :2], r"shape \(5, 2\); expected"),
        (lambda *given: routed(right)(*given) + 1, r"The largest difference is at"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("router", in_numpy(function)))


def test_a_balance_that_is_off_has_no_known_mistake():
    off = balance_in_loops(share, mean_weight)
    assert re.search(r"It is \d\.\d+ instead of \d", complaint("balance", in_numpy(lambda *given: off(*given) + 1)))
