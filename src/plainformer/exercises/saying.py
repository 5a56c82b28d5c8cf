"""What the check says about a result: an example to follow by hand, and facts where no known mistake explains it."""

from collections.abc import Callable

import numpy as np

from plainformer.exercises.exercise import Exercise, is_real
from plainformer.exercises.running import run


def example(exercise: Exercise, function: Callable) -> list[str]:
    """The first example that the function gets wrong, as lines to read, or none."""
    for inputs in exercise.examples():
        came, expected = run(function, inputs, exercise), exercise.answer(**inputs)
        if isinstance(came, str) or exercise.is_same(came, expected):
            continue
        lines = [f"    {each} = {text(value)}" for each, value in inputs.items()]
        return [
            "With",
            *lines,
            "you return",
            *_result(exercise, inputs, came, with_sums=True),
            "it should be",
            *_result(exercise, inputs, expected),
        ]
    return []


def _result(exercise: Exercise, inputs: dict, numbers: np.ndarray, with_sums: bool = False) -> list[str]:
    if exercise.parts and len(numbers) == len(exercise.parts):
        return [f"    {part} = {text(each)}" for part, each in zip(exercise.parts, numbers, strict=True)]
    remark = exercise.remark(inputs, numbers) if exercise.remark else ""
    if with_sums and exercise.has_rows_of_weights and numbers.ndim == 2:
        remark = f"its rows sum to {text(numbers.sum(axis=1))}"
    return [f"    {text(numbers)}" + (f" ({remark})" if remark else "")]


def facts(exercise: Exercise, inputs: dict, came: np.ndarray, expected: np.ndarray) -> list[str]:
    """What can be said about a result that no known mistake explains."""
    for name, value in inputs.items():
        is_array = isinstance(value, np.ndarray) and is_real(value.dtype)
        if is_array and came.shape == value.shape and exercise.is_same(came, value.astype(np.float64)):
            return [f"You return {name} unchanged."]
    if came.shape != expected.shape:
        return [_about_shape(exercise, came, expected)]
    found = []
    numbers = came.astype(np.float64)
    if came.ndim == 0:
        return [f"It is {text(numbers)} instead of {text(expected)}."]
    if came.dtype.kind in "iub" and not exercise.is_exact:
        found.append(f"Your result holds {came.dtype}, which cannot hold fractions. Is an array made as integers?")
    if not np.isfinite(numbers).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        found.append(
            f"{(~np.isfinite(numbers)).sum()} of its {came.size} numbers are nan or infinite, the first at {bad}."
            " Is something divided by zero, or infinity taken from infinity?"
        )
        return found
    if exercise.is_exact:
        where = tuple(int(i) for i in np.argwhere(came != expected)[0])
        at = where[0] if len(where) == 1 else where
        found.append(
            f"{(came != expected).sum()} of its {came.size} ids differ from the right ones, the first at {at}: "
            f"{text(came[where])} instead of {text(expected[where])}."
        )
        return found
    ratio = (numbers * expected).sum() / (expected * expected).sum()
    if np.allclose(numbers, ratio * expected, rtol=1e-4, atol=1e-5):
        found.append(f"Every number is {text(ratio)} times what it should be. Is a factor missing, or one too many?")
    elif exercise.has_rows_of_weights and not np.allclose(numbers.sum(axis=1), expected.sum(axis=1), atol=1e-4):
        found.append(f"The rows sum to {text(numbers.sum(axis=1))}; each should sum to 1.")
    gap = np.abs(numbers - expected)
    where = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
    place = f"in {exercise.parts[where[0]]} at {where[1:]}" if exercise.parts else f"at {where}"
    found.append(f"The largest difference is {place}: {text(numbers[where])} instead of {text(expected[where])}.")
    return found


def _about_shape(exercise: Exercise, came: np.ndarray, expected: np.ndarray) -> str:
    if exercise.is_exact and expected.ndim == 1 == came.ndim:
        return f"Your result has {len(came)} ids; expected {len(expected)}."
    if exercise.is_exact and expected.ndim == 1 < came.ndim:
        return f"Your result is a list of lists, of shape {came.shape}; expected one flat list of ids."
    whose, skip = ("Your result has", 0)
    if exercise.parts and came.ndim and len(came) == len(exercise.parts):
        whose, skip = (f"Your {' and '.join(exercise.parts)} have", 1)
    if expected.ndim == 0:
        return f"Your result has shape {came.shape}; expected a single number. Is a mean missing?"
    likely = _likely(came, expected)
    return f"{whose} shape {came.shape[skip:]}; expected {exercise.result} = {expected.shape[skip:]}. {likely}"


def _likely(came: np.ndarray, expected: np.ndarray) -> str:
    if came.ndim == 0:
        return "Did you sum over everything?"
    if came.size == expected.size and sorted(came.shape) == sorted(expected.shape):
        return "The axes are in another order."
    if came.ndim < expected.ndim:
        return "An axis is missing: did you sum over it, or take one index only?"
    if came.ndim > expected.ndim:
        return "There is an axis too many: is a sum missing, or a reshape?"
    return "Which axis of which argument does each of the expected ones come from?"


def shapes(inputs: dict) -> str:
    """What the function was called with, in one line."""
    return ", ".join(f"{name} {np.shape(value) or text(value)}" for name, value in inputs.items())


def text(value) -> str:
    """Numbers as one would write them by hand: nested lists, at most three decimals."""
    if isinstance(value, np.ndarray) and value.size > 60:
        return f"an array of shape {value.shape}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"[{', '.join(text(each) for each in value)}]"
    if isinstance(value, np.ndarray | np.floating | float):
        return f"{round(float(value), 3) + 0.0:.8g}"  # + 0.0 turns -0 into 0
    return str(value) if isinstance(value, int | np.bool_ | np.integer) else repr(value)
