"""The exercise of chapter 21 on a cache of few bits, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_serving_caches import in_loops

from plainformer.attention import quantise_groups


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda *given: in_loops()(*given).T, r"shape \(6, 12\); expected"),
        (lambda *given: in_loops()(*given) + 1, r"The largest difference is at \(\d+, \d+\)"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("round_by_groups", in_numpy(function)))


def test_the_answer_is_what_the_package_keeps():
    numbers = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    groups = quantise_groups(numbers.T.reshape(6, 2, 4), 4)
    found = np.asarray(groups.numbers()).reshape(6, 8).T
    np.testing.assert_allclose(found, in_loops()(numbers, 4, 4), atol=2e-3)  # whose steps are of 16 bits
