"""The exercises of the chapter `dynamics`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_dynamics import solved, stepped


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("cayley", lambda scores: scores, "You return scores unchanged"),
        ("cayley", lambda scores: 2 * solved()(scores), "Every number is 2 times"),
        ("triangular_step", lambda x, matrix, bias: x, "You return x unchanged"),
        (
            "triangular_step",
            lambda *given: stepped()(*given)[1:],
            r"\(4, 4\); expected \(seq, d_model\) = \(5, 4\)",
        ),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    message = complaint("triangular_step", in_numpy(stepped(may_read=lambda i, j: i <= j, skip=0.0)))
    assert "diagonal stays" in message.splitlines()[0]
    assert "; and you leave out the row itself" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = solved(-1)
    lines = [line.strip() for line in complaint("cayley", in_numpy(wrong)).splitlines()]
    scores = np.array(eval(lines[lines.index("With") + 1].removeprefix("scores = ")))
    np.testing.assert_allclose(eval(lines[lines.index("you return") + 1]), wrong(scores), atol=6e-4)
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), solved()(scores), atol=6e-4)
