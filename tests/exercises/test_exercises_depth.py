"""The exercise of the chapter `depth`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_depth import in_loops


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x, "You return x unchanged"),
        (lambda x: 2 * in_loops()(x), r"It is 1\.72 instead of 0\.86"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("spread", in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    message = complaint("spread", in_numpy(in_loops(root=False, axis=1)))
    assert "each token over its features" in message.splitlines()[0]
    assert "forget the root" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = in_loops(root=False)
    lines = [line.strip() for line in complaint("spread", in_numpy(wrong)).splitlines()]
    x = np.array(eval(lines[lines.index("With") + 1].removeprefix("x = ")))
    np.testing.assert_allclose(eval(lines[lines.index("you return") + 1]), wrong(x), atol=6e-4)
