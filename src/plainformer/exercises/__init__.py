"""Checks for the reader's own code: what is wrong with it, said as a teacher would (all chapters)."""

import difflib
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from plainformer.exercises import (
    attention,
    blocks,
    decoder,
    encoder,
    multi_head,
    notation,
    positions,
    seq2seq,
    tokens,
    vision,
    windows,
)
from plainformer.exercises.exercise import Exercise, Mistake
from plainformer.exercises.running import run, signature_complaint
from plainformer.exercises.saying import example, facts, shapes

EXERCISES = {
    **notation.EXERCISES,
    **tokens.EXERCISES,
    **windows.EXERCISES,
    **attention.EXERCISES,
    **multi_head.EXERCISES,
    **blocks.EXERCISES,
    **positions.EXERCISES,
    **decoder.EXERCISES,
    **encoder.EXERCISES,
    **seq2seq.EXERCISES,
    **vision.EXERCISES,
}


class ExerciseError(AssertionError):
    """The reader's function is not right yet; the message says in what way."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback: the message alone."""
        return [f"ExerciseError: {self}"]


def check(name: str, function: Callable) -> None:
    """Try the reader's function on small inputs, and name the mistake if there is one.

    **Arguments**

    - `name`: the exercise, as the chapter gives it, such as `"attend"`.
    - `function`: the reader's function. It is called by position, with JAX arrays where the exercise has arrays, and
      may return a JAX array, a NumPy array or a list of numbers.

    **Returns** nothing; prints one line if the function is right.

    **Raises** `ExerciseError` if it is not. The message says what the function does instead, shows that on an input
    small enough to check by hand, and asks a question. In a notebook the message is all that is shown, and in a script
    no line of this package stands above it.
    """
    __tracebackhide__ = True
    complaint = _complaint(name, function)
    if complaint:
        _hide_our_lines_in_scripts()
        raise ExerciseError(complaint) from None
    exercise = EXERCISES[name]
    cases = exercise.cases()
    on = exercise.on.format(**{each: np.shape(value) or value for each, value in cases[0].inputs.items()})
    print(f"{name}: passed {len(cases)} checks on {on}")


def _complaint(name: Any, function: Any) -> str | None:
    """What is wrong, or None."""
    if isinstance(function, str) and callable(name):
        mine = getattr(name, "__name__", "my_function")
        return f'the two arguments are swapped: first the name, then the function, as in check("{function}", {mine}).'
    if not isinstance(name, str) or name not in EXERCISES:
        close = difflib.get_close_matches(name, EXERCISES) if isinstance(name, str) else []
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"there is no exercise {name!r}.{hint} The exercises are: {', '.join(EXERCISES)}."
    exercise = EXERCISES[name]
    cases = exercise.cases()
    complaint = signature_complaint(name, function, list(cases[0].inputs))
    if complaint:
        return complaint

    came = [run(function, case.inputs, exercise) for case in cases]
    expected = [exercise.answer(**case.inputs) for case in cases]
    is_wrong = [not isinstance(c, str) and not exercise.is_same(c, w) for c, w in zip(came, expected, strict=True)]
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
                return "\n".join([f"{name}: {says}.", *example(exercise, function), asks])
    for case, result in zip(cases, came, strict=True):
        if isinstance(result, str):
            return f"{name}: {result}\nThe input was: {case.name}, with {shapes(case.inputs)}."
    for case, result, right, bad in zip(cases, came, expected, is_wrong, strict=True):
        if bad and not isinstance(result, str):
            if _is_right_in_half_precision(result, right):
                return (
                    f"{name}: for {case.name} your result is right as far as {result.dtype} goes: it was computed in "
                    f"{result.dtype}, which holds only two or three decimals. Work in float32, as the arguments come."
                )
            said = [f"{name}: not right yet for {case.name}, with {shapes(case.inputs)}."]
            return "\n".join(said + facts(exercise, case.inputs, result, right) + example(exercise, function))
    return None


def _find(exercise: Exercise, seen: dict[int, tuple]) -> list[Mistake]:
    """The mistake, or the two mistakes, that yield what came for every one of these inputs."""
    for mistakes, steps in _combinations(exercise.mistakes):
        wrong = partial(exercise.answer, **steps)
        if all(_agree(exercise, wrong, inputs, came) for inputs, came in seen.values()):
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


def _agree(exercise: Exercise, wrong: Callable, inputs: dict, came: np.ndarray | str) -> bool:
    try:
        with np.errstate(all="ignore"):
            comes = wrong(**inputs)
    except (ValueError, LookupError):  # what cannot be carried out: then the reader's function has raised, too
        return isinstance(came, str)
    return not isinstance(came, str) and exercise.is_same(came, comes)


def _is_right_in_half_precision(came: np.ndarray, expected: np.ndarray) -> bool:
    if not jnp.issubdtype(came.dtype, jnp.floating) or came.dtype.itemsize > 2 or came.shape != expected.shape:
        return False
    rounding = 4 * float(jnp.finfo(came.dtype).eps)  # a few steps, each rounded
    return np.allclose(came.astype(np.float64), expected, rtol=rounding, atol=rounding * np.abs(expected).max())


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
