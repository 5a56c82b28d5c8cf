"""What the check says: the mistake by its name, an example to follow by hand, or what differs if none is known."""

from collections.abc import Callable

import numpy as np

from plainformer.exercises.arrays import is_real
from plainformer.exercises.diagnosis import diagnose
from plainformer.exercises.model import Exercise
from plainformer.exercises.runner import run


def complaint_about(name: str, exercise: Exercise, function: Callable, got: list[np.ndarray | str]) -> str | None:
    """Return what to say of the function that got these results, or `None` if all are right."""
    checked = list(zip(exercise.cases, got, exercise.expected, strict=True))
    is_wrong = [isinstance(result, str) or not exercise.is_same(result, right) for _, result, right in checked]
    if mistakes := diagnose(exercise, got, is_wrong):
        diagnosis = "; and ".join(mistake.diagnosis for mistake in mistakes)
        hints = " ".join(mistake.hint for mistake in mistakes)
        return "\n".join([f"{name}: {diagnosis}.", *example(exercise, function), hints])
    for case, result, _ in checked:
        if isinstance(result, str):
            return f"{name}: {result}\nThe input was: {case.name}, with {shapes(case.inputs)}."
    for (case, result, right), bad in zip(checked, is_wrong, strict=True):
        if bad and not isinstance(result, str):
            if _is_right_in_half_precision(result, right):
                return (
                    f"{name}: for {case.name} your result is right as far as {result.dtype} goes: it was computed in "
                    f"{result.dtype}, which holds only two or three decimals. Work in float32, as the arguments come."
                )
            said = [f"{name}: not right yet for {case.name}, with {shapes(case.inputs)}."]
            return "\n".join(said + describe(exercise, case.inputs, result, right) + example(exercise, function))
    return None


def _is_right_in_half_precision(got: np.ndarray, expected: np.ndarray) -> bool:
    if got.dtype.kind in "biu" or got.dtype.itemsize > 2 or got.shape != expected.shape:
        return False
    rounding = 4 * float(np.spacing(np.ones((), got.dtype)))  # a few steps, each rounded
    return np.allclose(got.astype(np.float64), expected, rtol=rounding, atol=rounding * np.abs(expected).max())


def example(exercise: Exercise, function: Callable) -> list[str]:
    """Return the first example that the function gets wrong, as lines to read, or none."""
    found = [(inputs, run(function, inputs, exercise), exercise.answer(**inputs)) for inputs in exercise.examples]
    wrong = [each for each in found if isinstance(each[1], str) or not exercise.is_same(each[1], each[2])]
    for inputs, got, expected in sorted(wrong, key=lambda each: isinstance(each[1], str))[:1]:
        lines = [f"    {each} = {text(value)}" for each, value in inputs.items()]
        if isinstance(got, str):
            return ["With", *lines, got, "it should be", *_result(exercise, inputs, expected)]
        result, right = _result(exercise, inputs, got, with_sums=True), _result(exercise, inputs, expected)
        if result == right:
            right.append(f"    (the largest difference is {np.abs(got - expected).max():.1g})")
        return ["With", *lines, "you return", *result, "it should be", *right]
    return []


def _result(exercise: Exercise, inputs: dict, numbers: np.ndarray, with_sums: bool = False) -> list[str]:
    if exercise.parts and len(numbers) == len(exercise.parts):
        return [f"    {part} = {text(each)}" for part, each in zip(exercise.parts, numbers, strict=True)]
    remark = exercise.remark(inputs, numbers) if exercise.remark else ""
    if with_sums and exercise.has_rows_of_weights and numbers.ndim == 2:
        remark = f"its rows sum to {text(numbers.sum(axis=1))}"
    return [f"    {text(numbers)}" + (f" ({remark})" if remark else "")]


def describe(exercise: Exercise, inputs: dict, got: np.ndarray, expected: np.ndarray) -> list[str]:
    """Return what can be said about a result that no known mistake explains."""
    for name, value in inputs.items():
        is_array = isinstance(value, np.ndarray) and is_real(value.dtype)
        if is_array and got.shape == value.shape and exercise.is_same(got, value.astype(np.float64)):
            return [f"You return {name} unchanged."]
    if got.shape != expected.shape:
        return [_about_shape(exercise, got, expected)]
    if got.ndim == 0:
        return [f"It is {text(got.astype(np.float64))} instead of {text(expected)}."]
    if exercise.is_exact:
        return [_about_ids(got, expected)]
    is_integer = got.dtype.kind in "iub"
    integers = f"Your result holds {got.dtype}, which cannot hold fractions. Is an array made as integers?"
    return [integers] * is_integer + _about_numbers(exercise, got.astype(np.float64), expected)


def _about_ids(got: np.ndarray, expected: np.ndarray) -> str:
    where = tuple(int(i) for i in np.argwhere(got != expected)[0])
    return (
        f"{(got != expected).sum()} of its {got.size} ids differ from the right ones, the first at "
        f"{where[0] if len(where) == 1 else where}: {text(got[where])} instead of {text(expected[where])}."
    )


def _about_numbers(exercise: Exercise, numbers: np.ndarray, expected: np.ndarray) -> list[str]:
    if not np.isfinite(numbers).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        return [
            f"{(~np.isfinite(numbers)).sum()} of its {numbers.size} numbers are nan or infinite, the first at {bad}."
            " Is something divided by zero, or infinity taken from infinity?"
        ]
    found = []
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


def _about_shape(exercise: Exercise, got: np.ndarray, expected: np.ndarray) -> str:
    if exercise.is_exact and expected.ndim == 1 == got.ndim:
        return f"Your result has {len(got)} ids; expected {len(expected)}."
    if exercise.is_exact and expected.ndim == 1 < got.ndim:
        return f"Your result is a list of lists, of shape {got.shape}; expected one flat list of ids."
    if expected.ndim == 0:
        return f"Your result has shape {got.shape}; expected a single number. Is a mean missing?"
    whose, skip = "Your result has", 0
    if exercise.parts and got.ndim and len(got) == len(exercise.parts):
        whose, skip = f"Your {' and '.join(exercise.parts)} have", 1
    likely = _likely_cause(got, expected)
    sizes = str(expected.shape[skip:])
    names = "" if exercise.result == sizes else f"{exercise.result} = "
    return f"{whose} shape {got.shape[skip:]}; expected {names}{sizes}. {likely}"


def _likely_cause(got: np.ndarray, expected: np.ndarray) -> str:
    if got.ndim == 0:
        return "Did you sum over everything?"
    if got.size == expected.size and sorted(got.shape) == sorted(expected.shape):
        return "The axes are in another order."
    if got.ndim < expected.ndim:
        return "An axis is missing: did you sum over it, or take one index only?"
    if got.ndim > expected.ndim:
        return "There is an axis too many: is a sum missing, or a reshape?"
    return "Which axis of which argument does each of the expected ones come from?"


def shapes(inputs: dict) -> str:
    """Return what the function was called with, in one line."""
    return ", ".join(f"{name} {getattr(value, 'shape', ()) or text(value)}" for name, value in inputs.items())


def text(value) -> str:
    """Return numbers as one would write them by hand: nested lists, at most three decimals."""
    if isinstance(value, np.ndarray) and value.size > 60:
        return f"an array of shape {value.shape}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"[{', '.join(text(each) for each in value)}]"
    if isinstance(value, np.ndarray | np.floating | float):
        return f"{round(float(value), 3) + 0.0:.8g}"  # + 0.0 turns -0 into 0
    if isinstance(value, dict):
        return f"a dictionary of {', '.join(value)}"
    return str(value) if isinstance(value, int | np.bool_ | np.integer) else repr(value)
