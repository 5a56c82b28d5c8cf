"""What is said of results that no known mistake explains, and of what is not a result at all."""

import re
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint, in_numpy, softmax, with_added
from readers_answers_blocks import pre_norm_block
from readers_answers_decoder import beam_step, surprise
from readers_answers_encoder import pooled
from readers_answers_positions import alibi
from readers_answers_self_attention import hidden, scaled, weights
from readers_answers_tokens import encode, leftmost, pairs

from plainformer.exercises import check
from plainformer.exercises.registry import exercise_modules, load_exercise

right_step = beam_step()


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        # One array of real numbers.
        ("scores", lambda q, k: None, "returned None. Did you forget the return"),
        ("scores", lambda q, k: (scaled(q, k), q), "returned a tuple of 2; expected one array"),
        ("scores", lambda q, k: [[1.0], [1.0, 2.0]], "a list of 2 rows, which are 1 to 2 long; expected one array"),
        ("scores", lambda q, k: scaled(q, k).astype(np.complex64), "expected one array of real numbers"),
        ("scores", lambda q, k: [[None] * 7] * 5, "a list, which begins with a NoneType; expected one array"),
        ("scores", lambda q, k: q, "You return queries unchanged"),
        ("scores", lambda q, k: scaled(q, k).sum(), r"\(\); expected \(q_seq, kv_seq\) = \(5, 7\). Did you sum over"),
        ("scores", lambda q, k: scaled(q, k).sum(axis=1), r"shape \(5,\); expected .* An axis is missing"),
        ("scores", lambda q, k: scaled(q, k)[None], r"shape \(1, 5, 7\); expected .* an axis too many"),
        ("scores", lambda q, k: scaled(q, k)[:, 1:], r"shape \(5, 6\); expected .* Which axis"),
        ("scores", lambda q, k: 2.5 * scaled(k, q), r"shape \(7, 5\); expected .* in another order"),
        ("scores", lambda q, k: scaled(q, k).astype(np.int32), "holds int32, which cannot hold fractions"),
        ("scores", lambda q, k: with_added(scaled(q, k), np.nan, 1, 2), r"1 of its 35 numbers are nan .* at \(1, 2\)"),
        ("scores", lambda q, k: 3 * scaled(q, k), "Every number is 3 times what it should be"),
        ("scores", lambda q, k: with_added(scaled(q, k), 2.5, 0, 1), r"largest difference is at \(0, 1\)"),
        ("weights", lambda *given: 1 / (1 + np.exp(-hidden(*given))), r"The rows sum to \[.*\n(.*\n)*it should be"),
        ("weights", lambda *given: weights(*given) * np.nan, r"^weights: your result is not a number \(nan\) wherever"),
        ("mean_pool", lambda rows, is_token: pooled(rows, is_token).T, r"shape \(4, 3\); .*axes are in another"),
        ("pre_norm_block", lambda x, a, f, n, m: a, "returned a Function"),
        # One number.
        ("cross_entropy", lambda *given: surprise(*given).mean() + 1, r"It is \d\.\d+ instead of \d"),
        ("cross_entropy", surprise, r"shape \(5,\); expected a single number. Is a mean missing"),
        # Ids.
        ("encode", lambda text, encoder: text.split(), "returned a list, which begins with a str; expected one list"),
        ("encode", lambda *given: np.array(encode()(*given)) * 1.0, "float64 numbers; expected one list"),
        ("encode", lambda text, encoder: [encode()(part, encoder) for part in text.split("n")], "rows, which are"),
        ("encode", lambda *given: [encode()(*given)], "list of lists, of shape .* one flat list"),
        ("encode", lambda *given: encode()(*given)[:-1], r"Your result has \d+ ids; expected \d+"),
        (
            "encode",
            lambda *given: [n + (place == 2) for place, n in enumerate(encode()(*given))],
            r"1 of its \d+ ids differ from the right ones, the first at 2: \d+ instead of \d+",
        ),
        # Several arrays.
        ("pairs", lambda ids, length: ids, "returned an? .* of 23; expected 2 arrays, inputs and targets"),
        ("pairs", lambda ids, length: 3, "returned an int; expected 2 arrays, inputs and targets"),
        (
            "pairs",
            lambda *given: (pairs()(*given)[0], pairs()(*given)[1][:, 1:]),
            r"inputs and targets have different shapes: inputs \(5, 4\), targets \(5, 3\)",
        ),
        (
            "pairs",
            lambda *given: tuple(part[:, 1:] for part in pairs()(*given)),
            r"Your inputs and targets have shape \(5, 3\); expected \(num_rows, length\) = \(5, 4\)",
        ),
        ("pairs", lambda ids, length: ([[1], [1, 2]], [[1], [2]]), "inputs: your function returned a list of 2 rows"),
        (
            "beam_step",
            lambda old, new, width: (*right_step(old, new, width)[:2], np.zeros(width)),
            r"The largest difference is in new_log_probs at \(1,\): 0 instead of -\d",
        ),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, function if name == "encode" else in_numpy(function)))


def test_what_is_wrong_with_arrays_of_jax():
    """The same, of a reader who stays with JAX."""
    right = jax.jit(scaled)
    assert "expected one array of real numbers" in complaint("scores", lambda q, k: right(q, k).astype(jnp.complex64))
    message = complaint("scores", lambda q, k: right(q, k).at[0, 1].add(2.5))
    assert "The largest difference is at (0, 1): " in message


def test_every_exercise_says_which_axes_its_result_has():
    """The axes are counted in the words, and the right result has as many."""
    for name in exercise_modules():
        exercise = load_exercise(name)
        axes = [axis for axis in exercise.result.strip("()").split(",") if axis.strip()]
        assert len(axes) == exercise.expected[0].ndim - bool(exercise.parts), name


def test_check_names_two_mistakes_at_once():
    wrong = in_numpy(lambda q, k, v, mask: softmax(np.where(mask, q @ k.T, -np.inf), axis=0) @ v)
    message = complaint("attend", wrong)
    assert "not scaled: they are the bare dot products; and your weights sum to one over the queries" in message
    assert message.count("?") == 2
    message = complaint("alibi", alibi(slope=lambda h, n: 2**-h, distance=lambda i, j: (i - j) ** 2))
    assert "right for eight heads only; and your distances are squared" in message


# --- The example ------------------------------------------------------------------------------------------------


def shown(name, function):
    """The lines of the example, and the inputs by name as they stand there."""
    lines = [line.strip() for line in complaint(name, in_numpy(function)).splitlines()]
    inputs = dict(line.split(" = ") for line in lines[1 : lines.index("you return")] if " = " in line)
    return lines, inputs


def test_numbers_of_an_array_are_the_functions_own_with_the_sums_of_its_rows():
    def wrong_axis(q, k, mask):
        return softmax(hidden(q, k, mask), axis=0)

    lines, inputs = shown("weights", wrong_axis)
    given = [np.array(eval(inputs[name])) for name in ("queries", "keys", "mask")]
    numbers, sums = re.fullmatch(
        r"(\[\[.*\]\]) \(its rows sum to (\[.*\])\)", lines[lines.index("you return") + 1]
    ).groups()
    np.testing.assert_allclose(eval(numbers), wrong_axis(*given), atol=6e-4)
    np.testing.assert_allclose(eval(sums), wrong_axis(*given).sum(axis=1), atol=6e-4)
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), weights(*given), atol=6e-4)


def test_functions_are_shown_as_they_would_be_typed():
    def first_norm_twice(x, attention, feed_forward, norm, other):
        return pre_norm_block(x, attention, feed_forward, norm, norm)

    lines, inputs = shown("pre_norm_block", first_norm_twice)
    assert list(inputs) == ["x", "attention", "feed_forward", "attention_norm", "feed_forward_norm"]
    given = [np.array(eval(inputs["x"])), *(eval(text) for text in list(inputs.values())[1:])]
    np.testing.assert_allclose(eval(lines[lines.index("you return") + 1]), first_norm_twice(*given))
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), pre_norm_block(*given))


def test_several_arrays_are_shown_by_name():
    wrong = beam_step(total=lambda old, new: old[:, None] * new)
    lines, inputs = shown("beam_step", wrong)
    given = [np.array(eval(inputs[name]), np.float32) for name in ("log_probs", "next_log_probs")]
    for said, function in (("you return", wrong), ("it should be", right_step)):
        start = lines.index(said) + 1
        parts = [eval(line.split(" = ")[1]) for line in lines[start : start + 3]]
        for part, expected in zip(parts, function(*given, int(inputs["width"])), strict=True):
            np.testing.assert_allclose(part, expected, atol=6e-4)


def test_ids_are_shown_with_their_tokens():
    lines = complaint("encode", encode(leftmost)).splitlines()
    assert "    encoder = an encoder with the merges (a, n), (b, an), (n, a)" in lines
    assert lines[lines.index("you return") + 1].endswith("(that is 'na' 'na')")
    assert lines[lines.index("it should be") + 1] == "    [77, 256, 64] (that is 'n' 'an' 'a')"


# --- What is no result ------------------------------------------------------------------------------------------


def test_error_in_the_readers_code_gives_shapes_and_line():
    def swapped(q, k):
        first = q.shape[1]
        return k.T @ q / first

    line = swapped.__code__.co_firstlineno + 2
    for function in (swapped, jax.jit(swapped), partial(swapped)):
        message = complaint("scores", function)
        assert re.search(rf"raised TypeError on line {line} \(`return k.T @ q / first`\): .*dot_general", message)
        assert "queries (5, 3), keys (7, 3)" in message


def test_error_on_one_kind_of_input_only():
    def picky(q, k):
        if len(q) == 1:
            raise RuntimeError
        return scaled(q, k)

    message = complaint("scores", in_numpy(picky))
    assert "raised RuntimeError" in message
    assert "one query and one key" in message


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_half_precision_is_named(dtype):
    @jax.jit
    def in_half(q, k):
        return q.astype(dtype) @ k.astype(dtype).T / jnp.sqrt(jnp.asarray(q.shape[1], dtype))

    assert f"is right as far as {np.dtype(dtype)} goes: it was computed" in complaint("scores", in_half)
    assert "computed in" not in complaint("scores", in_numpy(lambda q, k: (1.5 * scaled(q, k)).astype(dtype)))


def test_error_that_cannot_be_written_out():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError

    def raises(q, k):
        raise Silent

    assert re.search(r"raised Silent on line \d+ .*: no message", complaint("scores", raises))


def test_check_passes_fractions(capsys):
    def exact(q, k):
        return np.array([[Fraction(float(n)) for n in row] for row in scaled(q, k)], dtype=object)

    check("scores", in_numpy(exact))
    assert capsys.readouterr().out.startswith("scores: passed")


def test_callable_object_gives_its_line():
    class Scores:
        def __call__(self, queries, keys):
            return queries @ missing

    assert re.search(r"raised NameError on line \d+ \(`return queries @ missing`\)", complaint("scores", Scores()))
