"""Checks for the reader's own code: what is wrong with it, said as a teacher would (all chapters)."""

import inspect
import itertools
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from numbers import Real

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.exercises import attention, multi_head
from plainformer.exercises.exercise import Exercise, Mistake

EXERCISES = {**attention.EXERCISES, **multi_head.EXERCISES}


class ExerciseError(AssertionError):
    """The reader's function is not right yet; the message says in what way."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback: the message alone."""
        return [f"ExerciseError: {self}"]


def check(name: str, function: Callable) -> None:
    """Try the reader's function on small inputs, and name the mistake if there is one.

    **Arguments**

    - `name`: the exercise, as the chapter gives it, such as `"attend"`.
    - `function`: the reader's function. It is called with JAX arrays, by position, and may return a JAX array, a
      NumPy array or a list of numbers.

    **Returns** nothing; prints one line if the function is right.

    **Raises** `ExerciseError` if it is not. The message says what the function does instead, shows that on an input
    small enough to check by hand, and asks a question. In a notebook the message is all that is shown.
    """
    __tracebackhide__ = True
    complaint = _complaint(name, function)
    if complaint:
        raise ExerciseError(complaint)
    exercise = EXERCISES[name]
    cases = exercise.cases()
    on = exercise.on.format(**{each: np.shape(value) or value for each, value in cases[0].inputs.items()})
    print(f"{name}: passed {len(cases)} checks on {on}")


def _complaint(name: str, function: Callable) -> str | None:
    """What is wrong, or None."""
    if not isinstance(name, str) or name not in EXERCISES:
        return f"there is no exercise {name!r}. The exercises are: {', '.join(EXERCISES)}."
    exercise = EXERCISES[name]
    cases = exercise.cases()
    complaint = _signature_complaint(name, function, list(cases[0].inputs))
    if complaint:
        return complaint

    came = [_run(function, case.inputs) for case in cases]
    wanted = [exercise.answer(**case.inputs) for case in cases]
    is_wrong = [not isinstance(c, str) and not _same(c, w) for c, w in zip(came, wanted, strict=True)]
    if any(is_wrong):
        # All ordinary inputs together tell the most mistakes apart. If none explains them all, those up to the first
        # wrong result may still tell one; two at least, since a single one is too easily hit by chance.
        ordinary = [i for i, case in enumerate(cases) if not case.is_edge]
        up_to_first = list(range(max(is_wrong.index(True), 1) + 1))
        scopes = [ordinary, up_to_first] if any(is_wrong[i] for i in ordinary) else [up_to_first]
        for scope in scopes:
            found = _find(exercise, {i: (cases[i].inputs, came[i]) for i in scope})
            if found:
                says = "; and ".join(mistake.says for mistake in found)
                asks = " ".join(mistake.asks for mistake in found)
                return "\n".join([f"{name}: {says}.", *_example(exercise, function), asks])
    for case, result in zip(cases, came, strict=True):
        if isinstance(result, str):
            return f"{name}: {result}\nThe input was: {case.name}, with {_shapes(case.inputs)}."
    for case, result, right, bad in zip(cases, came, wanted, is_wrong, strict=True):
        if bad and not isinstance(result, str):
            if _is_right_in_half_precision(result, right):
                return (
                    f"{name}: for {case.name} your result is right as far as {result.dtype} goes: it was computed in "
                    f"{result.dtype}, which holds only two or three decimals. Work in float32, as the arguments come."
                )
            facts = [f"{name}: not right yet for {case.name}, with {_shapes(case.inputs)}."]
            return "\n".join(facts + _facts(exercise, case.inputs, result, right) + _example(exercise, function))
    return None


def _signature_complaint(name: str, function: object, arguments: list[str]) -> str | None:
    call = f"{name} is called as f({', '.join(arguments)})"
    if not callable(function):
        hint = " Pass the function itself, without calling it." if hasattr(function, "shape") else ""
        return f"{name}: wanted a function, came {_a(function)}.{hint}"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not tell
        return None
    try:
        signature.bind(*arguments)
    except TypeError as error:
        return f"{name}: your function takes {signature}, but {call}: {error}."
    return None


def _run(function: Callable, inputs: dict) -> np.ndarray | str:
    """The result as an array, or in words why there is none."""
    arguments = [_as_argument(value) for value in inputs.values()]
    try:
        with ExitStack() as stack:
            # On accelerators a product of float32 may be rounded far more coarsely than we compare.
            stack.enter_context(jax.default_matmul_precision("highest"))
            stack.enter_context(np.errstate(all="ignore"))
            result = function(*arguments)
    except Exception as error:
        return f"your function raised {type(error).__name__}{_place(error, function)}: {_message(error)}"
    if result is None:
        return "your function returned None. Did you forget the return?"
    if isinstance(result, tuple):
        return f"your function returned a tuple of {len(result)}; wanted one array. Return the result alone."
    try:
        array = np.asarray(result)
        if _is_real(array.dtype):
            return array
        # Fractions, or arrays of one number each in an array of objects
        if array.dtype == object and all(isinstance(n, Real) or _is_real(np.asarray(n).dtype) for n in array.flat):
            return array.astype(np.float64)
    except Exception:  # a ragged list, an object that nothing converts
        pass
    return f"your function returned {_a(result)}; wanted one array of real numbers."


def _is_real(dtype: np.dtype) -> bool:
    return dtype.kind == "b" or (jnp.issubdtype(dtype, jnp.number) and not jnp.issubdtype(dtype, jnp.complexfloating))


def _message(error: Exception) -> str:
    """The first line of what the reader's error says, if it says anything."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # an error class of the reader's own may fail here, too
        lines = []
    return lines[0][:300] if lines else "no message"


def _find(exercise: Exercise, seen: dict[int, tuple]) -> list[Mistake]:
    """The mistake, or the two mistakes, that yield what came for every one of these inputs."""
    for mistakes, steps in _combinations(exercise.mistakes):
        wrong = partial(exercise.answer, **steps)
        if all(_agree(wrong, inputs, came) for inputs, came in seen.values()):
            return mistakes
    return []


def _combinations(mistakes: list[Mistake]) -> Iterator[tuple[list[Mistake], dict]]:
    """Single mistakes first, then pairs that do not touch the same step."""
    ways = [(mistake, way) for mistake in mistakes for way in mistake.ways]
    for mistake, way in ways:
        yield [mistake], way
    for (one, way), (other, way_too) in itertools.combinations(ways, 2):
        if not way.keys() & way_too.keys():
            yield [one, other], way | way_too


def _agree(wrong: Callable, inputs: dict, came: np.ndarray | str) -> bool:
    try:
        with np.errstate(all="ignore"):
            comes = wrong(**inputs)
    except ValueError:  # shapes that do not fit: then the reader's function has raised, too
        return isinstance(came, str)
    return not isinstance(came, str) and _same(came, comes)


def _same(came: np.ndarray, wanted: np.ndarray) -> bool:
    came = came.astype(np.float64)
    return came.shape == wanted.shape and np.allclose(came, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


def _is_right_in_half_precision(came: np.ndarray, wanted: np.ndarray) -> bool:
    if not jnp.issubdtype(came.dtype, jnp.floating) or came.dtype.itemsize > 2 or came.shape != wanted.shape:
        return False
    rounding = 4 * float(jnp.finfo(came.dtype).eps)  # a few steps, each rounded
    return np.allclose(came.astype(np.float64), wanted, rtol=rounding, atol=rounding * np.abs(wanted).max())


def _example(exercise: Exercise, function: Callable) -> list[str]:
    """The first example that the function gets wrong, as lines to read, or none."""
    for inputs in exercise.examples():
        came, wanted = _run(function, inputs), exercise.answer(**inputs)
        if isinstance(came, str) or _same(came, wanted):
            continue
        lines = [f"    {each} = {_text(value)}" for each, value in inputs.items()]
        sums = (
            f" (its rows sum to {_text(came.sum(axis=1))})" if exercise.has_rows_of_weights and came.ndim == 2 else ""
        )
        return ["With", *lines, "you return", f"    {_text(came)}{sums}", "it should be", f"    {_text(wanted)}"]
    return []


def _facts(exercise: Exercise, inputs: dict, came: np.ndarray, wanted: np.ndarray) -> list[str]:
    """What can be said about a result that no known mistake explains."""
    for name, value in inputs.items():
        if came.shape == np.shape(value) and _same(came, np.asarray(value, np.float64)):
            return [f"You return {name} unchanged."]
    if came.shape != wanted.shape:
        return [
            f"Your result has shape {came.shape}; wanted {exercise.result} = {wanted.shape}. {_likely(came, wanted)}"
        ]
    facts = []
    numbers = came.astype(np.float64)
    if came.dtype.kind in "iub":
        facts.append(f"Your result holds {came.dtype}, which cannot hold fractions. Is an array made as integers?")
    if not np.isfinite(numbers).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        facts.append(
            f"{(~np.isfinite(numbers)).sum()} of its {came.size} numbers are nan or infinite, the first at {bad}."
        )
        return facts
    ratio = (numbers * wanted).sum() / (wanted * wanted).sum()
    if np.allclose(numbers, ratio * wanted, rtol=1e-4, atol=1e-5):
        facts.append(f"Every number is {_text(ratio)} times what it should be.")
    elif exercise.has_rows_of_weights and not np.allclose(numbers.sum(axis=1), wanted.sum(axis=1), atol=1e-4):
        facts.append(f"The rows sum to {_text(numbers.sum(axis=1))}; each should sum to 1.")
    gap = np.abs(numbers - wanted)
    where = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
    facts.append(f"The largest difference is at {where}: {_text(numbers[where])} instead of {_text(wanted[where])}.")
    return facts


def _likely(came: np.ndarray, wanted: np.ndarray) -> str:
    if came.ndim == 0:
        return "Did you sum over everything?"
    if came.size == wanted.size and sorted(came.shape) == sorted(wanted.shape):
        return "The axes are in another order."
    if came.ndim < wanted.ndim:
        return "An axis is missing: did you sum over it, or take one index only?"
    if came.ndim > wanted.ndim:
        return "There is an axis too many: is a sum missing, or a reshape?"
    return "Which axis of which argument does each of the wanted ones come from?"


def _place(error: Exception, function: Callable) -> str:
    """The deepest line of the reader's file or cell that the error came through."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    theirs = [
        frame for frame in traceback.extract_tb(error.__traceback__) if code and frame.filename == code.co_filename
    ]
    if not theirs:
        return ""
    return f" on line {theirs[-1].lineno}" + (f" (`{theirs[-1].line}`)" if theirs[-1].line else "")


def _as_argument(value):
    return value if isinstance(value, int) else jnp.asarray(value, bool if value.dtype == bool else jnp.float32)


def _shapes(inputs: dict) -> str:
    return ", ".join(f"{name} {np.shape(value) or value}" for name, value in inputs.items())


def _text(value) -> str:
    """Numbers as one would write them by hand: nested lists, at most three decimals."""
    if isinstance(value, np.ndarray) and value.size > 60:
        return f"an array of shape {value.shape}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"[{', '.join(_text(each) for each in value)}]"
    if isinstance(value, int | np.bool_ | np.integer):
        return str(value)
    return f"{round(float(value), 3) + 0.0:.8g}"  # + 0.0 turns -0 into 0


def _a(thing) -> str:
    name = type(thing).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
