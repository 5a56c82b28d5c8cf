"""The exercises of the chapter `finetuning`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_finetuning import adapted, preferred, right_mask


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("adapter", lambda *given: adapted(*given) + 1, r"The largest difference is at \(\d, \d\)"),
        ("adapter", lambda *given: adapted(*given).T, r"shape \(4, 5\); expected .*axes are in another"),
        ("merged_weight", lambda w, a, b, scale: w + 3 * a @ b, r"The largest difference is at \(\d, \d\)"),
        ("answer_mask", lambda tokens, length: np.zeros(3, int), r"Your result has 3 ids"),
        ("answer_mask", lambda tokens, length: 2 * right_mask(tokens, length), r"instead of"),
        ("preference_loss", lambda *given: preferred(*given) + 1, r"It is \d\.\d+ instead of \d"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))
