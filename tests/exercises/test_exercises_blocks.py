"""The exercises of the chapter `blocks`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy, with_added
from readers_answers_blocks import bent, layer_norm_in_loops, pre_norm_block, relu, z

from plainformer.exercises.registry import load_exercise


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("layer_norm", lambda x, scale, bias, eps: x, "You return x unchanged"),
        ("layer_norm", lambda *given: 2 * layer_norm_in_loops(*given), "Every number is 2 times"),
        (
            "layer_norm",
            lambda *given: with_added(layer_norm_in_loops(*given), 3, 0, 2),
            r"not right yet for more tokens than features, with x \(5, 4\), scale \(4,\), bias \(4,\), eps 0.001.\n"
            r"The largest difference is at \(0, 2\): [-.\d]+ instead of [-.\d]+",
        ),
        ("feed_forward", lambda *given: with_added(bent(relu)(*given), 1, 1, 3), r"difference is at \(1, 3\): "),
        ("pre_norm_block", lambda *given: with_added(pre_norm_block(*given), 1, 2, 1), r"difference is at \(2, 1\): "),
        ("pre_norm_block", lambda *given: np.mean(pre_norm_block(*given)), "Did you sum over everything"),
        ("pre_norm_block", lambda x, a, f, n, m: a, "returned a Function"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function)))


def test_check_names_two_mistakes_at_once():
    message = complaint("feed_forward", in_numpy(lambda x, w_in, b_in, w_out, b_out: relu(x @ w_in) @ w_out))
    assert message.startswith("feed_forward: b_in plays no part; and b_out plays no part.\nWith\n")
    message = complaint("layer_norm", in_numpy(lambda x, scale, bias, eps: z(x, 0) * scale))
    assert "eps plays no part; and bias plays no part" in message


def test_functions_are_shown_as_they_would_be_typed():
    message = complaint("pre_norm_block", in_numpy(lambda x, a, f, n, m: x + f(m(x + a(n(x))))))
    assert "\n    attention_norm = lambda rows: rows - 2\n" in message
    for inputs in load_exercise("pre_norm_block").examples:
        rows = np.arange(6.0).reshape(3, 2)
        for function in list(inputs.values())[1:]:
            np.testing.assert_allclose(eval(repr(function))(rows), function(rows))


def test_numbers_in_the_message_are_the_functions_own():
    def first_norm_twice(x, attention, feed_forward, norm, other):
        return pre_norm_block(x, attention, feed_forward, norm, norm)

    lines = complaint("pre_norm_block", in_numpy(first_norm_twice)).splitlines()
    stated = dict(line.strip().split(" = ") for line in lines[2:7])
    arguments = [np.array(eval(stated["x"])), *(eval(text) for text in list(stated.values())[1:])]
    assert list(stated) == ["x", "attention", "feed_forward", "attention_norm", "feed_forward_norm"]
    np.testing.assert_allclose(eval(lines[lines.index("you return") + 1]), first_norm_twice(*arguments))
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), pre_norm_block(*arguments))


def test_examples_by_hand():
    """Two rows, their standardised forms, and a block of units, tens and hundreds."""
    expected = {
        "layer_norm": [[-1, 1], [-1, 1], [1, -1]],
        "feed_forward": [[90], [370]],  # hidden: (2, 1) and (0, 4)
        "pre_norm_block": [[3033], [1215]],  # after attention: 33 and 15
    }
    for name, result in expected.items():
        exercise = load_exercise(name)
        np.testing.assert_allclose(exercise.answer(**exercise.examples[0]), result)
