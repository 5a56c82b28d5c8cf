"""The exercises of the chapter `vision`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_vision import cut_in_loops, rolled, whole


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("cut_patches", lambda image, tall, wide: image, "You return image unchanged"),
        (
            "cut_patches",
            lambda *given: cut_in_loops()(*given)[1:],
            r"\(11, 30\); expected \(num_patches, tall \* wide \* channels\) = \(12, 30\)",
        ),
        ("class_token", lambda patches, class_vector, table: patches, "You return patches unchanged"),
        (
            "class_token",
            lambda *given: whole(*given).reshape(-1, given[1].shape[0]),
            r"\(18, 4\); expected \(num_images, 1 \+ num_patches, d_model\) = \(3, 6, 4\)",
        ),
        ("rollout", lambda weights: 2 * rolled()(weights), "Every number is 2 times"),
        ("rollout", lambda weights: rolled()(weights) ** 2, r"The rows sum to \[0"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    two = rolled(keep=lambda matrix: matrix, step=lambda matrix, found: found @ matrix)
    message = complaint("rollout", in_numpy(two))
    assert "identity is missing" in message.splitlines()[0]
    assert "; and you multiply in the wrong order" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = rolled(keep=lambda matrix: matrix + np.eye(len(matrix)))
    lines = [line.strip() for line in complaint("rollout", in_numpy(wrong)).splitlines()]
    weights = np.array(eval(lines[lines.index("With") + 1].removeprefix("weights = ")))
    got, sums = lines[lines.index("you return") + 1].split(" (its rows sum to ")
    np.testing.assert_allclose(eval(got), wrong(weights), atol=6e-4)
    np.testing.assert_allclose(eval(sums.removesuffix(")")), [4, 4])
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), rolled()(weights), atol=6e-4)
