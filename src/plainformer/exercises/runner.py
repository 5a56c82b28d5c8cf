"""How the reader's function is called, and what is said if no usable result comes back."""

import copy
import inspect
import traceback
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from plainformer.exercises.arrays import as_readers_array, is_real, precise_products
from plainformer.exercises.model import Exercise


def signature_complaint(name: str, function: object, arguments: list[str]) -> str | None:
    """Return what is wrong before the function is called: it is not a function, or takes other arguments."""
    call = f"{name} is called as f({', '.join(arguments)})"
    if inspect.isclass(function):
        return f"{name}: expected a function, got the class {function.__name__}; {call}. Pass a function or an object."
    if not callable(function):
        hint = " Pass the function itself, without calling it." if _is_a_result(function) else ""
        hint = " Pass the function itself, without quotation marks." if isinstance(function, str) else hint
        return f"{name}: expected a function, got {with_article(function)}.{hint}"
    try:
        signature = inspect.signature(function)
    except Exception:  # some built-in functions do not tell, and an object may tell in its own way
        return None
    try:
        signature.bind(*arguments)
    except TypeError as error:
        return f"{name}: your function takes {signature}, but {call}: {error}."
    return None


def run(function: Callable, inputs: dict, exercise: Exercise) -> np.ndarray | str:
    """Return the result as an array of its own, or in words why there is none."""
    arguments = [as_argument(value) for value in inputs.values()]
    try:
        with precise_products(), np.errstate(all="ignore"):
            result = function(*arguments)
    except (Exception, SystemExit) as error:
        hint = _hint(error)
        return f"your function raised {type(error).__name__}{_place(error, function)}: {_message(error)}{hint}"
    if result is None:
        return "your function returned None. Did you forget the return?"
    if exercise.parts:
        return _together(result, exercise)
    if isinstance(result, tuple) and not exercise.is_exact:
        return f"your function returned a tuple of {len(result)}; expected one array. Return the result alone."
    return _as_array(result, exercise)


def as_argument(value):
    """Return what the reader's function gets: an array for an array, a copy of anything that could be changed."""
    if isinstance(value, dict):
        return {name: as_argument(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_argument(each) for each in value]
    return as_readers_array(value) if isinstance(value, np.ndarray) else copy.deepcopy(value)


def with_article(thing) -> str:
    """Return the type of something with its article: an int, a str; a module by its name."""
    if inspect.ismodule(thing):
        return f"the module {thing.__name__}"
    name = type(thing).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _is_a_result(thing) -> bool:
    return not inspect.ismodule(thing) and (hasattr(thing, "shape") or isinstance(thing, list | tuple))


def _together(result, exercise: Exercise) -> np.ndarray | str:
    """Return several results of one shape as one array, whose first axis counts them."""
    names, expected = " and ".join(exercise.parts), f"expected {len(exercise.parts)} arrays"
    try:
        number = len(result)
    except Exception:  # most things have no length, and some raise in their own way
        return f"your function returned {with_article(result)}; {expected}, {names}."
    if number != len(exercise.parts):
        return f"your function returned {with_article(result)} of {number}; {expected}, {names}."
    arrays: dict[str, np.ndarray] = {}
    for name, each in zip(exercise.parts, result, strict=True):
        array = _as_array(each, exercise)
        if isinstance(array, str):
            return f"{name}: {array}"
        arrays[name] = array
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        return f"your {names} have different shapes: {shapes}. Which number of one belongs to which of the other?"
    return np.stack(list(arrays.values()))


def _as_array(result, exercise: Exercise) -> np.ndarray | str:
    expected = "one list of ids, which are whole numbers" if exercise.is_exact else "one array of real numbers"
    try:
        array = np.array(result)  # a copy: the reader may use the same memory for the next result
        if is_real(array.dtype):
            if exercise.is_exact and array.size and array.dtype.kind not in "iu":
                return f"your function returned {array.dtype} numbers; expected {expected}."
            return array
        # Fractions, or arrays of one number each in an array of objects
        if array.dtype == object and all(isinstance(n, Real) or is_real(np.asarray(n).dtype) for n in array.flat):
            return array.astype(np.float64)
    except Exception:  # a ragged list, an object that nothing converts
        pass
    return f"your function returned {_in_words(result, exercise)}; expected {expected}."


def _in_words(result, exercise: Exercise) -> str:
    """What was returned in place of an array."""
    if isinstance(result, list | tuple) and result:
        lengths = {len(row) for row in result if hasattr(row, "__len__") and not isinstance(row, str)}
        if len(lengths) > 1 or (lengths and exercise.is_exact):
            return f"{with_article(result)} of {len(result)} rows, which are {min(lengths)} to {max(lengths)} long"
        first: Any = result
        while isinstance(first, list | tuple) and first:
            first = first[0]
        return f"{with_article(result)}, which begins with {with_article(first)}"
    return with_article(result) + (" that is still to be called" if callable(result) else "")


def _hint(error: BaseException) -> str:
    """What to do about an error whose own message helps a beginner little."""
    try:
        said = str(error)
    except Exception:
        return ""
    if "unhashable" in said and "Array" in said:
        return " An entry of a JAX array is no key of a dictionary. Begin with .tolist(), such as ids = ids.tolist()."
    if "immutable" in said or "read-only" in said:
        return " The arguments are JAX arrays, which never change. Write x = x.at[i].set(value), or begin a new array."
    return " Your function should return, not leave the program." if isinstance(error, SystemExit) else ""


def _message(error: BaseException) -> str:
    """The first line of what the reader's error says, if it says anything."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # an error class of the reader's own may fail here, too
        lines = []
    return lines[0][:300] if lines else "no message"


def _place(error: BaseException, function: Callable) -> str:
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
