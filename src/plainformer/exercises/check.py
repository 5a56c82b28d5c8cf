"""The check of a reader's function: a line about a right one, an error with the report about a wrong one."""

import difflib
import sys
import traceback
from collections.abc import Callable
from typing import Any

from plainformer.exercises.registry import exercise_modules, load_exercise
from plainformer.exercises.report import complaint_about
from plainformer.exercises.runner import run, signature_complaint


class ExerciseError(AssertionError):
    """The reader's function is not right yet; the message says in what way."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback: the message alone."""
        return [f"ExerciseError: {self}"]


def check(name: str, function: Callable) -> None:
    """Try the reader's function on small inputs, and name the mistake if there is one.

    Args:
        name: the exercise, as the chapter gives it, such as `"attend"`.
        function: the reader's function. It is called by position, with JAX arrays where the exercise has arrays, and
            may return a JAX array, a NumPy array or a list of numbers.

    Returns:
        Nothing; prints one line if the function is right.

    Raises:
        ExerciseError: if it is not. The message says what the function does instead, shows that on an input small
            enough to check by hand, and asks a question. In a notebook the message is all that is shown, and in a
            script no line of this package stands above it.
    """
    __tracebackhide__ = True
    complaint = _complaint(name, function)
    if complaint:
        _hide_our_lines_in_scripts()
        raise ExerciseError(complaint) from None
    exercise = load_exercise(name)
    sizes = {each: getattr(value, "shape", ()) or value for each, value in exercise.cases[0].inputs.items()}
    print(f"{name}: passed {len(exercise.cases)} checks on {exercise.tried_on.format(**sizes)}")


def _complaint(name: Any, function: Any) -> str | None:
    """What is wrong, or None."""
    if isinstance(function, str) and callable(name):
        mine = getattr(name, "__name__", "my_function")
        return f'the two arguments are swapped: first the name, then the function, as in check("{function}", {mine}).'
    names = list(exercise_modules())
    if not isinstance(name, str) or name not in names:
        close = difflib.get_close_matches(name, names) if isinstance(name, str) else []
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"there is no exercise {name!r}.{hint} The exercises are: {', '.join(names)}."
    exercise = load_exercise(name)
    complaint = signature_complaint(name, function, list(exercise.cases[0].inputs))
    if complaint:
        return complaint
    got = [run(function, case.inputs, exercise) for case in exercise.cases]
    return complaint_about(name, exercise, function, got)


def _hide_our_lines_in_scripts() -> None:
    """Let a script that ends with an `ExerciseError` show its own lines and the message, and none of this file.

    IPython asks the error itself what to show, and pytest heeds `__tracebackhide__`; Python alone offers only its hook
    for errors that nobody catches. All others go on to the hook that was there before.
    """
    if not isinstance(sys.excepthook, _Hook):
        sys.excepthook = _Hook(sys.excepthook)


class _Hook:
    """Shows an `ExerciseError` without our lines, and leaves all else to the hook before it."""

    def __init__(self, before: Callable):
        self.before = before

    def __call__(self, kind, error, trace):
        if not isinstance(error, ExerciseError):
            return self.before(kind, error, trace)
        theirs = [frame for frame in traceback.extract_tb(trace) if frame.filename != __file__]
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(theirs)] if theirs else []
        sys.stderr.write("".join([*lines, f"ExerciseError: {error}\n"]))
