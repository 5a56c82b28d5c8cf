"""The exercises of the chapter `relations`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_relations import gathered, smoothed


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("gather_messages", lambda values, adjacency: values, "You return values unchanged"),
        ("kernel_smooth", lambda queries, keys, values, width: values, "You return values unchanged"),
        ("kernel_smooth", lambda *given: 2 * smoothed()(*given), "Every number is 2 times"),
        ("gather_messages", lambda *given: gathered()(*given)[1:], r"expected \(nodes, d\) = \(5, 3\)"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    message = complaint("kernel_smooth", in_numpy(smoothed(divide=lambda width: width**2, axis=None)))
    assert "factor two is missing" in message.splitlines()[0]
    assert "do not sum to one" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = gathered(count=lambda adjacency, n: 1)
    lines = [line.strip() for line in complaint("gather_messages", in_numpy(wrong)).splitlines()]
    got = lines[lines.index("you return") + 1]
    np.testing.assert_allclose(eval(got), [[6.0], [1.0], [3.0]])
