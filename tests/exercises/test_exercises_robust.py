"""Whatever a reader passes to `check`, in whatever place, the answer is a sentence about it."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint, in_float64

from plainformer.exercises import ExerciseError, check
from plainformer.exercises.registry import exercise_modules, load_exercise

# What stands for all: rows of numbers, one number, ids of text by an object of the book's own, several arrays in one.
each_kind = pytest.mark.parametrize("name", ["scores", "cross_entropy", "encode", "pairs"])


def right(name):
    return in_float64(load_exercise(name).answer)


def is_exact(name):
    return load_exercise(name).is_exact


@each_kind
def test_check_passes_arrays_of_numpy_and_of_jax_and_lists(name, capsys):
    check(name, right(name))
    check(name, lambda *given: jax.device_put(right(name)(*given).astype(np.int32 if is_exact(name) else np.float32)))
    check(name, lambda *given: right(name)(*given).tolist())
    assert re.fullmatch(rf"({name}: passed \d checks on .+\n){{3}}", capsys.readouterr().out)


@each_kind
def test_what_the_reader_prints_is_kept(name, capsys):
    def talks(*given):
        print("looking at", len(given))
        return right(name)(*given)

    check(name, talks)
    assert re.fullmatch(rf"(looking at \d\n)+{name}: passed .*\n", capsys.readouterr().out)
    with pytest.raises(ExerciseError):
        check(name, lambda *given: print("nothing to return"))
    assert capsys.readouterr().out.startswith("nothing to return\n")


@each_kind
def test_function_that_raises(name):
    def raises(*given):
        raise LookupError("in my own words")

    line = raises.__code__.co_firstlineno + 1
    with pytest.raises(ExerciseError) as caught:
        check(name, raises)
    says = rf"{name}: your function raised LookupError on line {line} \(`raise LookupError\(.*\)`\): in my own words\n"
    assert re.match(says + "The input was: .+, with ", str(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len([entry for entry in caught.traceback if entry.path.match("plainformer/exercises/*")]) == 1


@each_kind
def test_function_that_leaves_the_program(name):
    says = "raised SystemExit .*: 3 Your function should return, not leave the program."
    assert re.search(says, complaint(name, lambda *given: sys.exit(3)))


def test_interruption_by_the_reader_goes_through():
    def waits(*given):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("scores", waits)


@each_kind
def test_result_of_another_shape(name):
    message = complaint(name, lambda *given: right(name)(*given)[..., None])
    assert re.search(r"shape \(.*\); expected ", message)
    message = complaint(name, lambda *given: 0)
    says = r"shape \(\); expected |returned an int; expected [23] arrays|^\w+: not right yet .*\nIt is 0 instead of "
    assert re.search(says, message)


@each_kind
def test_result_with_nan(name):
    message = complaint(name, lambda *given: right(name)(*given) * np.nan)
    expected = (
        "returned float64 numbers; expected one list of ids"
        if is_exact(name)
        else "are nan or infinite|number .nan.|It is nan instead of"
    )
    assert re.search(expected, message)


@each_kind
@pytest.mark.parametrize(
    ("result", "called"),
    [
        (None, "None. Did you forget the return?"),
        ({}, "a dict"),
        ("text", "a str"),
        (len, "a builtin"),
        (1j, "a compl"),
    ],
)
def test_result_that_is_no_array(name, result, called):
    message = complaint(name, lambda *given: result)
    assert f"your function returned {called}" in message
    assert "expected" in message or result is None


@each_kind
def test_result_in_a_tuple(name):
    assert re.search(
        r"tuple of |of 1; expected [23]|list of lists", complaint(name, lambda *given: (right(name)(*given),))
    )


@each_kind
def test_arguments_that_do_not_fit(name):
    called = ", ".join(load_exercise(name).cases[0].inputs)
    message = complaint(name, lambda: None)
    assert f"{name}: your function takes (), but {name} is called as f({called}): too many" in message


@each_kind
@pytest.mark.parametrize("thing", [3, None, "my_function", [1, 2], {}])
def test_what_is_no_function(name, thing, unchecked):
    message = complaint(name, thing)
    assert message.startswith(f"{name}: expected a function, got a")


def test_result_or_name_in_place_of_the_function(unchecked):
    for result in (jnp.ones((2, 2)), np.ones(2), [1, 2], (3, 4)):
        assert complaint("scores", result).endswith(" Pass the function itself, without calling it.")
    assert complaint("scores", "my_scores").endswith("got a str. Pass the function itself, without quotation marks.")


@each_kind
def test_class_in_place_of_a_function(name):
    class Mine:
        pass

    called = ", ".join(load_exercise(name).cases[0].inputs)
    assert f"{name}: expected a function, got the class Mine; {name} is called as f({called})." in complaint(name, Mine)


@each_kind
def test_arguments_of_check_the_wrong_way_round(name, unchecked):
    def my_answer(*given):
        return None

    with pytest.raises(ExerciseError, match=rf'arguments are swapped: .* as in check\("{name}", my_answer\)\.'):
        check(my_answer, name)


@each_kind
def test_misspelled_name(name):
    for wrong in (name[:-1], name.capitalize(), name + "s"):
        if wrong not in exercise_modules():
            message = complaint(wrong, right(name))
            assert message.startswith(f"there is no exercise {wrong!r}. Did you mean {name!r}? The exercises are: ")
    assert "Did you mean" not in complaint("qqq", right(name))


@each_kind
def test_function_that_changes_its_arguments(name):
    def changes(*given):
        for each in given:
            each[0] = 0

    message = complaint(name, changes)
    assert re.search(r"raised TypeError on line \d+ \(`each\[0\] = 0`\): .*(does not support|immutable)", message)


@pytest.mark.parametrize("as_numpy", [lambda x: x, np.asarray])
def test_change_of_an_array_is_answered_with_a_remedy(as_numpy):
    def changes(queries, keys):
        scores = as_numpy(queries)
        scores[0, 0] = 1
        return scores

    message = complaint("scores", changes)
    assert "The arguments are JAX arrays, which never change. Write x = x.at[i].set(value), or" in message


@each_kind
def test_result_in_memory_that_is_used_again(name):
    memory = np.zeros(1000, int if is_exact(name) else float)

    def thrifty(*given):
        result = right(name)(*given)
        view = memory[: result.size].reshape(result.shape)
        view[...] = result
        return view

    check(name, thrifty)


@each_kind
def test_result_is_never_zeros_or_ones(name):
    """A function that ignores its arguments passes no exercise."""
    for value in (0, 1):
        complaint(name, lambda *given, value=value: np.full_like(right(name)(*given), value))


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


def test_error_inside_a_compiled_function_keeps_its_line():
    @jax.jit
    def compiled(queries, keys):
        return queries @ keys

    assert re.search(
        r"raised TypeError on line \d+ \(`return queries @ keys`\): dot_general", complaint("scores", compiled)
    )
