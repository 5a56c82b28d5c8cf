"""What a page of the site asks: run what a reader has written there, and check the functions in it."""

import contextlib
import io
import linecache
import traceback
from collections.abc import Iterable

import numpy as np

from plainformer.exercises.check import ExerciseError, check

FILE = "<your code>"
NO_JAX = "\nThere is no JAX in this page: write np where the chapter writes jnp, or do the exercise in Colab."


def answer(code: str, functions: dict[str, str], before: Iterable[str] = ()) -> tuple[bool, str]:
    """Return whether the reader's functions are right, and what the code and the checks say.

    Args:
        code: what the reader wrote.
        functions: the name of the reader's function in it, for each exercise to check.
        before: what the reader wrote in earlier exercises of the page, which may be used.
    """
    names = {"np": np, "__name__": "__main__"}
    for earlier in before:
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
            exec(earlier, names)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        is_right = _is_right(code, functions, names)
    return is_right, said.getvalue().rstrip()


def _is_right(code: str, functions: dict[str, str], names: dict) -> bool:
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)  # for the lines of an error
    try:
        exec(compile(code, FILE, "exec"), names)
    except BaseException as error:  # the reader may leave the program, too
        print(_what_was_raised(error))
        return False
    for exercise, function in functions.items():
        if function not in names:
            print(f"{exercise}: there is no function {function} yet; expected def {function}(...) in your code.")
            return False
        try:
            check(exercise, names[function])
        except ExerciseError as error:
            print(f"{error}{NO_JAX if _wants_jax(error) else ''}")
            return False
    return True


def _what_was_raised(error: BaseException) -> str:
    """The error as Python shows it, with the reader's lines alone."""
    shown = traceback.TracebackException.from_exception(error)
    shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if frame.filename == FILE])
    return "".join(shown.format()).rstrip() + (NO_JAX if _wants_jax(error) else "")


def _wants_jax(error: BaseException) -> bool:
    return any(f"{quote}{name}{quote}" in str(error) for name in ("jax", "jnp", "jax.numpy") for quote in "'`")
