"""The exercises of chapter 09; the wrong answers are written as a reader would, not with the catalogue's own steps."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_vision import cut_in_loops, mixed, rolled, whole

import plainformer as pf
from plainformer.exercises import EXERCISES, check, running, vision

NAMES = list(vision.EXERCISES)


def package_patches(image, tall, wide):
    return pf.image_to_patches(image, (tall, wide))


def one_image_at_a_time(patches, class_vector, table):
    return jax.vmap(lambda rows: jnp.vstack([class_vector[None], rows]) + table)(patches)


RIGHT = [
    ("cut_patches", cut_in_loops()),
    ("cut_patches", package_patches),
    ("class_token", in_numpy(whole)),
    ("class_token", one_image_at_a_time),
    ("rollout", rolled()),
    ("rollout", lambda weights: jnp.linalg.multi_dot([jnp.eye(weights.shape[3]), *mixed(weights)[::-1]])),
    ("rollout", pf.attention_rollout),
]


@pytest.mark.parametrize(("name", "function"), RIGHT)
def test_check_passes_right_answers(name, function, capsys):
    check(name, function)
    on = {
        "cut_patches": r"images such as \(6, 12, 5\), patches of 2 x 3 pixels",
        "class_token": r"patches \(3, 5, 4\), a table \(6, 4\)",
        "rollout": r"3 layers of 2 heads, 5 tokens",
    }[name]
    assert re.fullmatch(rf"{name}: passed [45] checks on {on}\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("cut_patches", lambda image, tall, wide: image, "You return image unchanged"),
        (
            "cut_patches",
            lambda image, tall, wide: package_patches(image, tall, wide)[1:],
            r"\(11, 30\); expected \(num_patches, tall \* wide \* channels\) = \(12, 30\)",
        ),
        ("class_token", lambda patches, class_vector, table: patches, "You return patches unchanged"),
        (
            "class_token",
            lambda *given: one_image_at_a_time(*given).reshape(-1, given[1].shape[0]),
            r"\(18, 4\); expected \(num_images, 1 \+ num_patches, d_model\) = \(3, 6, 4\)",
        ),
        ("rollout", lambda weights: 2 * pf.attention_rollout(weights), "Every number is 2 times"),
        ("rollout", lambda weights: pf.attention_rollout(weights) ** 2, r"The rows sum to \[0"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, function))


def test_check_names_two_mistakes_at_once():
    two = rolled(keep=lambda matrix: matrix, step=lambda matrix, found: found @ matrix)
    message = complaint("rollout", two)
    assert "identity is missing" in message.splitlines()[0]
    assert "; and you multiply in the wrong order" in message.splitlines()[0]


def test_numbers_in_the_message_are_the_functions_own():
    wrong = rolled(keep=lambda matrix: matrix + np.eye(len(matrix)))
    lines = [line.strip() for line in complaint("rollout", wrong).splitlines()]
    weights = np.array(eval(lines[lines.index("With") + 1].removeprefix("weights = ")))
    came, sums = lines[lines.index("you return") + 1].split(" (its rows sum to ")
    np.testing.assert_allclose(eval(came), wrong(weights), atol=6e-4)
    np.testing.assert_allclose(eval(sums.removesuffix(")")), [4, 4])
    np.testing.assert_allclose(
        eval(lines[lines.index("it should be") + 1]), pf.attention_rollout(jnp.asarray(weights)), atol=6e-4
    )


def test_examples_say_what_the_package_returns():
    package = dict(RIGHT)  # the last of each name
    for name in NAMES:
        for inputs in EXERCISES[name].examples():
            arguments = [running.as_argument(value) for value in inputs.values()]
            np.testing.assert_allclose(package[name](*arguments), EXERCISES[name].answer(**inputs), atol=1e-6)


def test_inputs_tell_sizes_apart():
    expected = {"cut_patches": 5, "class_token": 4, "rollout": 3}
    for name in NAMES:
        inputs = EXERCISES[name].cases()[0].inputs
        assert len({size for value in inputs.values() for size in np.shape(value) or [value]}) == expected[name]
