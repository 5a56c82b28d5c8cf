"""The exercises of the chapter `self_attention`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
from exercise_checks import complaint, in_numpy, softmax
from readers_answers_self_attention import hidden, weights


def test_check_names_two_mistakes_at_once():
    wrong = in_numpy(lambda q, k, v, mask: softmax(np.where(mask, q @ k.T, -np.inf), axis=0) @ v)
    message = complaint("attend", wrong)
    assert "not scaled: they are the bare dot products; and your weights sum to one over the queries" in message
    assert message.count("?") == 2


def test_numbers_in_the_message_are_the_functions_own():
    def wrong_axis(q, k, mask):
        return softmax(hidden(q, k, mask), axis=0)

    lines = complaint("weights", in_numpy(wrong_axis)).splitlines()
    stated = dict(line.strip().split(" = ") for line in lines if " = " in line)
    q, k, mask = (np.array(eval(stated[name])) for name in ("queries", "keys", "mask"))
    returned = lines[lines.index("you return") + 1]
    numbers, sums = re.fullmatch(r" +(\[\[.*\]\]) \(its rows sum to (\[.*\])\)", returned).groups()
    got = wrong_axis(q, k, mask)
    np.testing.assert_allclose(eval(numbers), got, atol=6e-4)
    np.testing.assert_allclose(eval(sums), got.sum(axis=1), atol=6e-4)
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), weights(q, k, mask), atol=6e-4)


def test_nan_throughout_is_not_blamed_on_the_mask():
    message = complaint("weights", in_numpy(lambda q, k, mask: weights(q, k, mask) * np.nan))
    assert message.startswith("weights: your result is not a number (nan) wherever")
    assert "you multiply" not in message.splitlines()[0]


def test_unknown_mistake_in_weights_gives_row_sums_and_an_example():
    message = complaint("weights", in_numpy(lambda q, k, mask: 1 / (1 + np.exp(-hidden(q, k, mask)))))
    assert "The rows sum to [" in message
    assert "it should be" in message
