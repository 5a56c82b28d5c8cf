"""The exercises of the chapter `positions`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy, with_added
from readers_answers_positions import alibi, right_bias, right_codes, turned

from plainformer.exercises.registry import load_exercise


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("sinusoid", lambda *given: 2 * right_codes(*given), "Every number is 2 times"),
        (
            "sinusoid",
            lambda *given: with_added(right_codes(*given), 1, 1, 2),
            r"not right yet for five positions from 0, with positions \(5,\), d_model 4.\n"
            r"The largest difference is at \(1, 2\): 1.01 instead of 0.01",
        ),
        ("sinusoid", lambda positions, d: right_codes(positions, d)[:, : d // 2], r"shape \(5, 2\); expected"),
        ("rotary", lambda *given: with_added(turned()(*given), 2, 4, 3), r"difference is at \(4, 3\): "),
        (
            "alibi",
            lambda *given: right_bias(*given)[0],
            r"expected \(num_heads, q_seq, q_seq\) = \(4, 5, 5\). An axis is",
        ),
        (
            "alibi",
            lambda *given: with_added(right_bias(*given), 7, 3, 0, 4),
            r"difference is at \(3, 0, 4\): 6.984 instead of -0.016",
        ),
        ("shift", lambda k, d: np.ones((d, d)), r"difference is at \(\d, \d\): 1 instead of "),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    message = complaint("alibi", alibi(slope=lambda h, n: 2**-h, distance=lambda i, j: (i - j) ** 2))
    assert "right for eight heads only; and your distances are squared" in message
    assert message.count("?") == 2


def test_numbers_in_the_message_are_the_functions_own():
    wrong = turned(pairs="neighbours")
    lines = complaint("rotary", in_numpy(wrong)).splitlines()
    stated = dict(line.strip().split(" = ") for line in lines if " = " in line)
    rows, places = (np.array(eval(stated[name])) for name in ("rows", "positions"))
    np.testing.assert_allclose(eval(lines[lines.index("you return") + 1]), wrong(rows, places), atol=6e-4)
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), turned()(rows, places), atol=6e-4)


def test_shift_takes_codes_to_codes():
    codes, shift = (load_exercise(name).answer for name in ("sinusoid", "shift"))
    np.testing.assert_allclose(codes(np.arange(5), 6) @ shift(3, 6), codes(np.arange(5) + 3, 6), atol=1e-12)
