"""The exercises of chapters 02 and 03; the wrong answers are written as a reader would, not with our own steps."""

import re
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint
from readers_answers import WRONG, heads, hidden, mix, scaled, softmax, weights, weights_in_loops

import plainformer as pf
from plainformer.exercises import EXERCISES, ExerciseError, check
from plainformer.exercises.running import as_argument

RIGHT = {
    "scores": pf.scaled_scores,
    "weights": pf.attention_weights,
    "attend": pf.attend,
    "split_heads": pf.split_heads,
    "multi_head": pf.multi_head_concat,
}


@pytest.mark.parametrize("name", RIGHT)
def test_check_passes_the_package(name, capsys):
    check(name, RIGHT[name])
    assert re.fullmatch(rf"{name}: passed \d checks on \d \w+, \d \w+\n", capsys.readouterr().out)


def test_check_passes_readers_own_code(capsys):
    check("scores", lambda q, k: np.array([[np.dot(a, b) for b in k] for a in q]) / q.shape[1] ** 0.5)
    check("scores", lambda q, k: scaled(q, k).tolist())
    check("scores", jax.jit(scaled))
    check("weights", weights)
    check("weights", weights_in_loops)
    check("attend", lambda queries, keys, values, mask=None, *, scale=None: weights(queries, keys, mask) @ values)
    check("split_heads", lambda x, h: jnp.split(x, h, axis=1))
    check("multi_head", lambda x, q, k, v, o: mix(heads(x, q, k, v), o))
    assert capsys.readouterr().out.splitlines()[5] == "attend: passed 7 checks on 5 queries, 7 keys"


@pytest.mark.parametrize(("name", "function", "names"), WRONG)
def test_check_names_the_readers_mistake(name, function, names):
    message = complaint(name, function)
    assert re.search(names, message.splitlines()[0])
    assert "; and " not in message.splitlines()[0]


def test_every_mistake_is_made_by_a_reader_here():
    made = [(name, complaint(name, function)) for name, function, _ in WRONG]
    for name in RIGHT:
        exercise = EXERCISES[name]
        own = [mistake for mistake in exercise.mistakes if name in ("scores", "split_heads") or _is_new(name, mistake)]
        for mistake in own:
            assert any(where == name and mistake.says in message for where, message in made), mistake.says


def test_check_names_two_mistakes_at_once():
    message = complaint("attend", lambda q, k, v, mask: softmax(jnp.where(mask, q @ k.T, -jnp.inf), axis=0) @ v)
    assert "not scaled: they are the bare dot products; and your weights sum to one over the queries" in message
    assert message.count("?") == 2


def test_numbers_in_the_message_are_the_functions_own():
    def wrong_axis(q, k, mask):
        return softmax(hidden(q, k, mask), axis=0)

    message = complaint("weights", wrong_axis)
    lines = message.splitlines()
    stated = dict(line.strip().split(" = ") for line in lines if " = " in line)
    read = {name: np.array(eval(text)) for name, text in stated.items()}
    q, k = (jnp.asarray(read[name], jnp.float32) for name in ("queries", "keys"))
    returned = lines[lines.index("you return") + 1]
    numbers, sums = re.fullmatch(r" +(\[\[.*\]\]) \(its rows sum to (\[.*\])\)", returned).groups()
    came = wrong_axis(q, k, jnp.asarray(read["mask"]))
    np.testing.assert_allclose(eval(numbers), came, atol=6e-4)
    np.testing.assert_allclose(eval(sums), came.sum(axis=1), atol=6e-4)
    should = eval(lines[lines.index("it should be") + 1])
    np.testing.assert_allclose(should, pf.attention_weights(q, k), atol=6e-4)


def test_unknown_exercise_lists_the_names():
    assert "no exercise 'atend'. Did you mean 'attend'? The exercises are: attend_columns, " in complaint(
        "atend", pf.attend
    )


def test_name_that_is_no_string_lists_the_names(unchecked):
    assert "no exercise ['attend']. The exercises are: attend_columns" in complaint(["attend"], pf.attend)


def test_result_in_place_of_a_function(unchecked):
    message = complaint("scores", jnp.ones((2, 2)))
    assert re.search(r"expected a function, came an? .*Pass the function itself", message)


def test_wrong_number_of_arguments():
    message = complaint("attend", lambda queries, keys: queries)
    assert "your function takes (queries, keys), but attend is called as f(queries, keys, values, mask)" in message


def test_forgotten_return():
    assert "returned None. Did you forget the return?" in complaint("scores", lambda q, k: None)


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

    message = complaint("scores", picky)
    assert "raised RuntimeError" in message
    assert "one query and one key" in message


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda q, k: (scaled(q, k), q), "returned a tuple of 2; expected one array"),
        (
            lambda q, k: [[1.0], [1.0, 2.0]],
            "a list of 2 rows, which are 1 to 2 long; expected one array of real numbers",
        ),
        (lambda q, k: "scores", "returned a str; expected one array of real numbers"),
        (lambda q, k: scaled(q, k).astype(jnp.complex64), "expected one array of real numbers"),
        (lambda q, k: [[None] * 7] * 5, "a list, which begins with a NoneType; expected one array of real numbers"),
        (lambda q, k: [[str(n) for n in row] for row in scaled(q, k).tolist()], "expected one array of real numbers"),
        (lambda q, k: iter(q), "expected one array of real numbers"),
        (lambda q, k: q, "You return queries unchanged"),
        (
            lambda q, k: scaled(q, k).sum(),
            r"shape \(\); expected \(q_seq, kv_seq\) = \(5, 7\). Did you sum over everything",
        ),
        (lambda q, k: scaled(q, k).sum(axis=1), r"shape \(5,\); expected .* An axis is missing"),
        (lambda q, k: scaled(q, k)[None], r"shape \(1, 5, 7\); expected .* an axis too many"),
        (lambda q, k: scaled(q, k)[:, 1:], r"shape \(5, 6\); expected .* Which axis"),
        (lambda q, k: 2.5 * scaled(k, q), r"shape \(7, 5\); expected .* in another order"),
        (lambda q, k: scaled(q, k).astype(jnp.int32), "holds int32, which cannot hold fractions"),
        (
            lambda q, k: scaled(q, k).at[1, 2].set(jnp.nan),
            r"1 of its 35 numbers are nan or infinite, the first at \(1, 2\)",
        ),
        (lambda q, k: 3 * scaled(q, k), "Every number is 3 times what it should be"),
        (lambda q, k: scaled(q, k).at[0, 1].add(2.5), r"largest difference is at \(0, 1\)"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("scores", function))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_half_precision_is_named(dtype):
    said = (
        rf"^scores: for more keys than queries your result is right as far as {np.dtype(dtype)} goes: it was computed"
    )

    def in_half(q, k):
        return q.astype(dtype) @ k.astype(dtype).T / jnp.sqrt(jnp.asarray(q.shape[1], dtype))

    assert re.search(said, complaint("scores", in_half))
    assert "computed in" not in complaint("scores", lambda q, k: (1.5 * scaled(q, k)).astype(dtype))


def test_nan_throughout_is_not_blamed_on_the_mask():
    message = complaint("weights", lambda q, k, mask: weights(q, k, mask) * jnp.nan)
    assert message.startswith("weights: your result is not a number (nan) wherever")
    assert "you multiply" not in message.splitlines()[0]


def test_error_that_cannot_be_written_out():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError

    def raises(q, k):
        raise Silent

    assert re.search(r"raised Silent on line \d+ .*: no message", complaint("scores", raises))


def test_check_passes_fractions(capsys):
    def exact(q, k):
        rows = [[Fraction(float(n)) for n in row] for row in scaled(q, k)]
        return np.array(rows, dtype=object)

    check("scores", exact)
    assert capsys.readouterr().out.startswith("scores: passed")


def test_unknown_mistake_in_weights_gives_row_sums_and_an_example():
    message = complaint("weights", lambda q, k, mask: jax.nn.sigmoid(hidden(q, k, mask)))
    assert "The rows sum to [" in message
    assert "it should be" in message


def test_callable_object_gives_its_line():
    class Scores:
        def __call__(self, queries, keys):
            return queries @ missing

    assert re.search(r"raised NameError on line \d+ \(`return queries @ missing`\)", complaint("scores", Scores()))


def test_error_shows_no_traceback_in_ipython():
    error = ExerciseError("attend: your mask plays no part.")
    assert error._render_traceback_() == ["ExerciseError: attend: your mask plays no part."]
    assert isinstance(error, AssertionError)
    with pytest.raises(ExerciseError) as caught:
        check("scores", lambda q, k: None)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len([entry for entry in caught.traceback if entry.path.match("plainformer/exercises/*")]) == 1


def test_inputs_tell_sizes_apart():
    """What two axes share, a mistake may hide behind: the first case of each exercise has no two sizes alike."""
    for name in RIGHT:
        exercise = EXERCISES[name]
        sizes = {size for value in exercise.cases()[0].inputs.values() for size in np.shape(value) or [value]}
        assert len(sizes) == {"scores": 3, "weights": 3, "attend": 4, "split_heads": 3, "multi_head": 5}[name]


def test_examples_say_what_the_package_returns():
    for name in RIGHT:
        exercise = EXERCISES[name]
        for inputs in exercise.examples():
            arguments = [as_argument(value) for value in inputs.values()]
            np.testing.assert_allclose(RIGHT[name](*arguments), exercise.answer(**inputs), rtol=1e-5, atol=1e-5)


def _is_new(name, mistake):
    before = {"weights": "scores", "attend": "weights", "multi_head": "attend"}[name]
    return mistake.says not in {other.says for other in EXERCISES[before].mistakes}
