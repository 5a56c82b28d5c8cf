"""The exercises of the chapter `inside`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_inside import after_it, looked, margin

from plainformer.exercises.registry import load_exercise


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("silenced_head", lambda heads, *rest: heads[0], r"expected \(seq, d_model\)"),
        ("patched_rows", lambda ours, theirs, places: ours[1:], r"expected \(seq, d_model\)"),
        ("patching_effect", lambda patched, before, source, rooms: margin(patched, rooms), "expected a single number"),
        ("induction_score", lambda *given: 3 * looked(after_it)(*given), r"It is \d\.\d+ instead of \d"),
    ],
)
def test_other_faults_are_described(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_effects_of_the_example_by_hand():
    exercise = load_exercise("patching_effect")
    assert exercise.answer(**exercise.examples[0]) == pytest.approx((-1 - 3) / (-1 - 3))
    np.testing.assert_allclose(exercise.answer(**exercise.examples[1]), np.median([1, 3 / 8, 1 / 5]))
