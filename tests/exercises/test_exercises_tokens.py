"""The exercises of the chapter `tokens`, beyond what `test_exercises_mistakes` tests of all."""

import re

import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_tokens import encode, leftmost, pairs, pairs_by_reshape, slices, whole_windows

from plainformer.exercises import check
from plainformer.exercises.registry import load_exercise


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        (
            "encode",
            lambda text, encoder: text.split(),
            r"returned a list, which begins with a str; expected one list of ids",
        ),
        ("encode", lambda text, encoder: "ids", "returned a str; expected one list of ids, which are whole numbers"),
        ("encode", lambda text, encoder: np.array(encode()(text, encoder)) * 1.0, "float64 numbers; expected one list"),
        ("encode", lambda text, encoder: [encode()(piece, encoder) for piece in text.split("n")], "rows, which are"),
        ("encode", lambda text, encoder: [encode()(text, encoder)], "list of lists, of shape .* one flat list"),
        ("encode", lambda text, encoder: encode()(text, encoder)[:-1], r"Your result has \d+ ids; expected \d+"),
        ("encode", lambda text, encoder: (n for n in encode()(text, encoder)), "returned a generator; expected"),
        (
            "encode",
            lambda text, encoder: [n + (k == 2) for k, n in enumerate(encode()(text, encoder))],
            r"1 of its \d+ ids differ from the right ones, the first at 2: \d+ instead of \d+",
        ),
        ("windows", lambda x, length, stride: x, "You return series unchanged"),
        (
            "windows",
            lambda x, length, stride: [x[n : n + length].tolist() for n in range(0, len(x), stride)],
            r"returned a list of 6 rows, which are 3 to 6 long; expected one array",
        ),
        ("windows", lambda x, length, stride: x[:length], r"shape \(6,\); expected \(num_windows, length\) = \(5, 6\)"),
        ("pairs", lambda ids, length: ids, "returned an ArrayImpl of 23; expected 2 arrays, inputs and targets"),
        ("pairs", lambda ids, length: 3, "returned an int; expected 2 arrays, inputs and targets"),
        (
            "pairs",
            lambda ids, length: (pairs()(ids, length)[0], pairs()(ids, length)[1][:, 1:]),
            r"your inputs and targets have different shapes: inputs \(5, 4\), targets \(5, 3\)",
        ),
        (
            "pairs",
            lambda ids, length: tuple(part[:, 1:] for part in pairs()(ids, length)),
            r"Your inputs and targets have shape \(5, 3\); expected \(num_rows, length\) = \(5, 4\)",
        ),
        ("pairs", lambda ids, length: ([[1], [1, 2]], [[1], [2]]), "inputs: your function returned a list of 2 rows"),
        ("pairs", lambda ids, length: (pairs()(ids, length)[0], None), "targets: your function returned a NoneType"),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, in_numpy(function) if name == "windows" else function))


def test_ids_are_compared_exactly():
    """4000 and 4001 differ by less than the tolerance for real numbers."""
    exercise = load_exercise("encode")
    assert not exercise.is_same(np.array([40_000]), np.array([40_001]))
    assert load_exercise("windows").is_same(np.array([40_000.0]), np.array([40_001.0]))


def test_check_names_two_mistakes_at_once():
    message = complaint("encode", encode(merge=leftmost, cut=str.split))
    assert message.startswith("encode: you merge whatever pair stands furthest left")
    assert "; and the spaces are lost" in message
    message = complaint("windows", in_numpy(lambda x, length, stride: slices(whole_windows)(x, length, 1).T))
    assert "the stride plays no part; and your axes are mixed up" in message


def test_ids_are_shown_with_their_tokens():
    lines = complaint("encode", encode(leftmost)).splitlines()
    assert lines[1:4] == [
        "With",
        "    text = 'nana'",
        "    encoder = an encoder with the merges (a, n), (b, an), (n, a)",
    ]
    assert lines[4:8] == [
        "you return",
        "    [258, 258] (that is 'na' 'na')",
        "it should be",
        "    [77, 256, 64] (that is 'n' 'an' 'a')",
    ]


def test_parts_are_shown_by_name():
    lines = complaint("pairs", in_numpy(pairs(shift=0))).splitlines()
    shown = [line.strip() for line in lines if " = " in line]
    assert shown[0] == "ids = [10, 11, 12, 13, 14, 15, 16, 17]"
    assert shown[2:] == [
        "inputs = [[10, 11, 12], [13, 14, 15]]",
        "targets = [[10, 11, 12], [13, 14, 15]]",
        "inputs = [[10, 11, 12], [13, 14, 15]]",
        "targets = [[11, 12, 13], [14, 15, 16]]",
    ]


def test_a_changed_encoder_harms_no_later_call():
    def spoils(text, encoder):
        ids = encoder.encode(text)
        encoder.vocabulary.clear()
        return ids

    check("encode", spoils)


def test_a_result_that_is_used_again_is_copied():
    memory = np.zeros(1000, int)

    def thrifty(ids, length):
        right = np.stack(pairs_by_reshape(ids, length))
        view = memory[: right.size].reshape(right.shape)
        view[...] = right
        return view

    check("pairs", thrifty)


def test_examples_by_hand():
    windows = load_exercise("windows")
    np.testing.assert_array_equal(windows.answer(**windows.examples[1]), [[10, 11, 12], [12, 13, 14]])
