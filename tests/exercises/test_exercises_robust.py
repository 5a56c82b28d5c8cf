"""Whatever a reader passes to `check`, in whatever place, the answer is a sentence about it."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint, in_float64
from readers_answers_tokens import pairs_by_reshape

from plainformer.exercises import ExerciseError, check
from plainformer.exercises.registry import exercise_modules, load_exercise

# What stands for all: rows of numbers, one number, ids of text by an object of the book's own, several arrays in one.
each_kind = pytest.mark.parametrize("name", ["scores", "cross_entropy", "encode", "pairs"])


def right(name):
    return in_float64(load_exercise(name).answer)


def is_exact(name):
    return load_exercise(name).is_exact


# --- Results ----------------------------------------------------------------------------------------------------


@each_kind
def test_check_passes_arrays_of_numpy_and_of_jax_and_lists(name, capsys):
    check(name, right(name))
    check(name, lambda *given: jax.device_put(right(name)(*given).astype(np.int32 if is_exact(name) else np.float32)))
    check(name, lambda *given: right(name)(*given).tolist())
    assert re.fullmatch(rf"({name}: passed \d checks on .+\n){{3}}", capsys.readouterr().out)


@each_kind
def test_result_of_another_shape_or_with_nan_or_in_a_tuple(name):
    message = complaint(name, lambda *given: right(name)(*given)[..., None])
    assert re.search(r"shape \(.*\); expected ", message)
    message = complaint(name, lambda *given: 0)
    says = r"shape \(\); expected |returned an int; expected [23] arrays|^\w+: not right yet .*\nIt is 0 instead of "
    assert re.search(says, message)
    message = complaint(name, lambda *given: right(name)(*given) * np.nan)
    says = "are nan or infinite|number .nan.|It is nan instead of"
    assert re.search("float64 numbers; expected one list of ids" if is_exact(name) else says, message)
    message = complaint(name, lambda *given: (right(name)(*given),))
    assert re.search(r"tuple of |of 1; expected [23]|list of lists", message)


@each_kind
def test_result_that_is_no_array(name):
    results = {"a dict": {}, "a str": "text", "a builtin": len, "a compl": 1j, "a generator": (n for n in "ab")}
    for called, result in results.items():
        message = complaint(name, lambda *given, result=result: result)
        assert f"your function returned {called}" in message
        assert "expected" in message


@each_kind
def test_result_is_never_zeros_or_ones(name):
    """A function that ignores its arguments passes no exercise."""
    for value in (0, 1):
        complaint(name, lambda *given, value=value: np.full_like(right(name)(*given), value))


@pytest.mark.parametrize(("name", "answer"), [("scores", right("scores")), ("pairs", pairs_by_reshape)])
def test_result_in_memory_that_is_used_again_is_copied(name, answer):
    memory = np.zeros(1000, int if is_exact(name) else float)

    def thrifty(*given):
        result = np.stack(answer(*given)) if name == "pairs" else answer(*given)
        view = memory[: result.size].reshape(result.shape)
        view[...] = result
        return view

    check(name, thrifty)


def test_a_changed_encoder_harms_no_later_call():
    def spoils(text, encoder):
        ids = encoder.encode(text)
        encoder.vocabulary.clear()
        return ids

    check("encode", spoils)


def test_ids_are_compared_exactly():
    """40,000 and 40,001 differ by less than the tolerance for real numbers."""
    assert not load_exercise("encode").is_same(np.array([40_000]), np.array([40_001]))
    assert load_exercise("windows").is_same(np.array([40_000.0]), np.array([40_001.0]))


# --- Functions --------------------------------------------------------------------------------------------------


def test_what_the_reader_prints_is_kept(capsys):
    def talks(*given):
        print("looking at", len(given))
        return right("scores")(*given)

    check("scores", talks)
    assert re.fullmatch(r"(looking at \d\n)+scores: passed .*\n", capsys.readouterr().out)


def test_function_that_raises_shows_no_line_of_the_package():
    def raises(*given):
        raise LookupError("in my own words")

    line = raises.__code__.co_firstlineno + 1
    with pytest.raises(ExerciseError) as caught:
        check("scores", raises)
    says = rf"scores: your function raised LookupError on line {line} \(`raise LookupError\(.*\)`\): in my own words\n"
    assert re.match(says + "The input was: .+, with ", str(caught.value))
    assert isinstance(caught.value, AssertionError)
    assert caught.value._render_traceback_() == [f"ExerciseError: {caught.value}"]  # in IPython
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len([entry for entry in caught.traceback if entry.path.match("plainformer/exercises/*")]) == 1


def test_function_that_leaves_the_program_and_interruption_by_the_reader():
    assert re.search("raised SystemExit .*: 3 .*not leave", complaint("scores", lambda *given: sys.exit(3)))

    def waits(*given):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("scores", waits)


def test_temperature_zero_raises_the_readers_own_error():
    message = complaint("temperature", lambda logits, t: np.asarray(logits) * (1 / t))
    assert re.search(r"^temperature: your function raised ZeroDivisionError on line \d+", message)
    assert "The input was: temperature 0" in message


@pytest.mark.parametrize("as_numpy", [lambda x: x, np.asarray])
def test_change_of_an_argument_is_answered_with_a_remedy(as_numpy):
    def changes(queries, keys):
        scores = as_numpy(queries)
        scores[0, 0] = 1
        return scores

    assert "which never change. Write x = x.at[i].set(value), or" in complaint("scores", changes)


def test_arguments_that_do_not_fit():
    assert "takes (), but scores is called as f(queries, keys): too many" in complaint("scores", lambda: None)


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        (3, "got an int"),
        (None, "got a NoneType"),
        ({}, "got a dict"),
        (np, "got the module numpy"),
        ("my_scores", "got a str. Pass the function itself, without quotation marks."),
        (jnp.ones((2, 2)), "Pass the function itself, without calling it."),
        ([1, 2], "Pass the function itself, without calling it."),
        (Exception, "got the class Exception; scores is called as f(queries, keys)."),
    ],
)
def test_what_is_no_function(thing, says, unchecked):
    message = complaint("scores", thing)
    assert message.startswith("scores: expected a function, got ")
    assert says in message


def test_objects_that_raise_when_they_are_looked_at(unchecked):
    class Sullen:
        @property
        def __signature__(self):
            raise RuntimeError("I do not tell")

        def __len__(self):
            raise RuntimeError("I do not tell")

        def __call__(self, *given):
            return self

    assert complaint("pairs", Sullen()).startswith("pairs: your function returned a Sullen; expected 2 arrays")
    assert complaint("layer_norm", Sullen()).startswith("layer_norm: your function returned a Sullen that")


# --- Names ------------------------------------------------------------------------------------------------------


def test_arguments_of_check_the_wrong_way_round(unchecked):
    def my_answer(*given):
        return None

    with pytest.raises(ExerciseError, match=r'arguments are swapped: .* as in check\("scores", my_answer\)\.'):
        check(my_answer, "scores")


def test_misspelled_names_and_what_is_no_name(unchecked):
    for wrong in ("score", "Scores", "scoress"):
        assert wrong not in exercise_modules()
        assert f"no exercise {wrong!r}. Did you mean 'scores'? The exercises are: a" in complaint(wrong, len)
    assert "Did you mean" not in complaint("qqq", len)
    assert "no exercise ['attend']. The exercises are: a" in complaint(["attend"], len)
