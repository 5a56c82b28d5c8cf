"""What is said of results that no known mistake explains, and of what is not a result at all."""

import re
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint, in_numpy, with_added
from readers_answers_self_attention import scaled

import plainformer as pf
from plainformer.exercises import ExerciseError, check


def test_unknown_exercise_lists_the_names():
    message = complaint("atend", pf.attend)
    assert (
        "no exercise 'atend'. Did you mean 'attend'? The exercises are: absorbed, adapter, alibi, answer_mask, "
        in message
    )


def test_name_that_is_no_string_lists_the_names(unchecked):
    assert "no exercise ['attend']. The exercises are: absorbed, adapter, alibi" in complaint(["attend"], pf.attend)


def test_result_in_place_of_a_function(unchecked):
    message = complaint("scores", jnp.ones((2, 2)))
    assert re.search(r"expected a function, got an? .*Pass the function itself", message)


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

    message = complaint("scores", in_numpy(picky))
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
        (lambda q, k: scaled(q, k).astype(np.complex64), "expected one array of real numbers"),
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
        (lambda q, k: scaled(q, k).astype(np.int32), "holds int32, which cannot hold fractions"),
        (
            lambda q, k: with_added(scaled(q, k), np.nan, 1, 2),
            r"1 of its 35 numbers are nan or infinite, the first at \(1, 2\)",
        ),
        (lambda q, k: 3 * scaled(q, k), "Every number is 3 times what it should be"),
        (lambda q, k: with_added(scaled(q, k), 2.5, 0, 1), r"largest difference is at \(0, 1\)"),
    ],
)
def test_what_no_known_mistake_explains(function, says):
    assert re.search(says, complaint("scores", in_numpy(function)))


def test_what_is_wrong_with_arrays_of_jax():
    """The same, of a reader who stays with JAX."""
    right = jax.jit(scaled)
    assert "expected one array of real numbers" in complaint("scores", lambda q, k: right(q, k).astype(jnp.complex64))
    message = complaint("scores", lambda q, k: right(q, k).at[0, 1].add(2.5))
    assert "The largest difference is at (0, 1): " in message


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_half_precision_is_named(dtype):
    said = (
        rf"^scores: for more keys than queries your result is right as far as {np.dtype(dtype)} goes: it was computed"
    )

    @jax.jit
    def in_half(q, k):
        return q.astype(dtype) @ k.astype(dtype).T / jnp.sqrt(jnp.asarray(q.shape[1], dtype))

    assert re.search(said, complaint("scores", in_half))
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


def test_error_shows_no_traceback_in_ipython():
    error = ExerciseError("attend: your mask plays no part.")
    assert error._render_traceback_() == ["ExerciseError: attend: your mask plays no part."]
    assert isinstance(error, AssertionError)
    with pytest.raises(ExerciseError) as caught:
        check("scores", lambda q, k: None)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len([entry for entry in caught.traceback if entry.path.match("plainformer/exercises/*")]) == 1
