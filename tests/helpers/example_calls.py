"""The examples in docstrings, run once: what they show that is not so, and how they call what is public."""

import doctest
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from types import CodeType

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
from book import ROOT
from book_meaning.equation_claims import docstrings
from wrong_calls import public_callables, reached

import plainformer as pf

# What the docstring of the package says that examples take for granted.
GIVEN = {"jax": jax, "jnp": jnp, "pf": pf}
EXAMPLES = {place.name: text for place, text in docstrings(ROOT) if ">>>" in text}
FILES = {"path", "folder", "directory"}  # what lies there is gone when the example has ended
LARGEST = 60_000  # numbers in all arguments, so that another call does not take long


def complaints(name: str, text: str) -> str:
    """What a docstring shows, where that is not what comes of its examples; nothing if all is well."""
    shown: list[str] = []
    doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, dict(GIVEN), name, None, 0), out=shown.append)
    plt.close("all")
    return "".join(shown)


def run_examples(folder: Path) -> tuple[dict[str, str], dict[str, dict]]:
    """Run all, each in a folder of its own; return what they complain of, and one call of each public name."""
    wrong, calls = {}, {}
    for number, (name, text) in enumerate(EXAMPLES.items()):
        (folder / str(number)).mkdir()
        with chdir(folder / str(number)), watched(calls):
            wrong[name] = complaints(name, text)
    return {name: said for name, said in wrong.items() if said}, calls


@contextmanager
def watched(calls: dict[str, dict]):
    """Note the first call of everything public, by name, with its arguments."""
    names: dict[CodeType, list[str]] = {}
    for name, function in public_callables().items():
        if (code := code_of(function)) is not None:
            names.setdefault(code, []).append(name)

    def watch(frame, event, _):
        if event != "call" or frame.f_code not in names:
            return
        code = frame.f_code
        given = {each: frame.f_locals[each] for each in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
        for name in names[code]:
            if name not in calls and is_to_keep(name, given):
                is_method = not isinstance(reached(name), type) and "self" in given
                calls[name] = {each: value for each, value in given.items() if is_method or each not in ("self", "cls")}

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


def code_of(function: Callable) -> CodeType | None:
    """What Python runs when this is called."""
    called = function.__init__ if isinstance(function, type) else function
    return getattr(inspect.unwrap(getattr(called, "__func__", called)), "__code__", None)


def is_to_keep(name: str, given: dict) -> bool:
    """Whether a call can be made again, and is of this class and not of one that shares its code."""
    if FILES & given.keys() or any(isinstance(value, Iterator) for value in given.values()):
        return False
    owner = reached(name.rpartition(".")[0]) if "." in name else None
    of_another = isinstance(owner, type) and "self" in given and type(given["self"]) is not owner
    leaves = jax.tree.leaves({each: value for each, value in given.items() if each != "cls"})
    is_traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    is_large = sum(getattr(leaf, "size", 0) for leaf in leaves) > LARGEST
    return not (of_another or is_traced or is_large)
