"""The exercises of the chapter `pretrained`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_pretrained import blocks, first_rows, fused, mapped

from plainformer.exercises.registry import load_exercise


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("split_fused", lambda *given: fused()(*given)[0], "expected 3 arrays, queries and keys and values"),
        (
            "split_fused",
            lambda *given: [part.transpose(1, 0, 2) for part in fused()(*given)],
            r"Your queries and keys and values have shape \(5, 2, 4\); expected \(num_heads, seq, d_k\) = \(2, 5, 4\)",
        ),
        ("shared_block", lambda x, *rest: x, "You return x unchanged"),
        ("shared_block", lambda *given: blocks()(*given) + 1, "The largest difference is at"),
        ("narrow_embedding", lambda *given: first_rows()(*given).T, r"shape \(8, 5\); expected .*axes are in another"),
        ("narrow_embedding", lambda *given: first_rows()(*given) + 1, "The largest difference is at"),
        ("atom_map", lambda *given: mapped()(*given)[::-1], r"\d+ instead of \d+"),
        ("atom_map", lambda weights, *rest: weights, "expected one list of ids"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function))), complaint(name, in_numpy(function))


def test_heads_have_several_atoms_to_choose_from():
    for case in load_exercise("atom_map").cases:
        elements, arrow = case.inputs["elements"], case.inputs["arrow"]
        choices = [np.sum(elements[:arrow] == element) for element in elements[arrow + 1 :] if element]
        assert min(choices) >= 1
        assert max(choices) >= 2
