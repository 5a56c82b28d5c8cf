"""Calls that are wrong in one argument each, made from the signatures; and who answers them."""

import dataclasses
import dis
import functools
import inspect
import math
import types
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from plainformer.attention import AttentionKernel
from plainformer.checks import Number
from plainformer.positions.positions import PositionScheme

PACKAGE = str(Path(pf.__file__).parent)
ROOMS = {"": pf, "attention.": pf.attention, "data.": pf.data, "training.": pf.training, "generation.": pf.generation}
ROOMS |= {"plots.": pf.plots, "exercises.": pf.exercises, "blocks.": pf.blocks}

# What a slip of the hand may put in the place of something else. What an annotation allows is taken out for it.
POOL = {
    "None": None,
    "True": True,
    "0": 0,
    "-1": -1,
    "3": 3,
    "2.5": 2.5,
    "nan": math.nan,
    "inf": math.inf,
    "2j": 2j,
    "a string": "text",
    "bytes": b"x",
    "[]": [],
    "[1]": [1],
    "[-1]": [-1],
    "[2.5]": [2.5],
    "[None]": [None],
    "[True, 2]": [True, 2],
    "[a string]": ["text"],
    "[[1]]": [[1]],
    "{}": {},
    "a set": {1},
    "a class": dict,
    "a function": len,
    "an object": object(),
    "a random key": jax.random.key(0),
    "an array": np.ones((2, 2, 2, 2, 2), np.float32),
}
DTYPES = ("float32", "int32", "bool", "complex64")
NAMES_OF_IDS = {"ids", "tokens", "source", "target", "targets", "inputs", "segments", "rows"}


class Wrong(NamedTuple):
    """One wrong call: of what, which argument, what is wrong about it, and the argument itself."""

    name: str
    argument: str
    what: str
    value: Any


class Answer(NamedTuple):
    """Who answered a wrong call, "own", "foreign" or "silent", and with which words."""

    by: str
    words: str


def public_callables() -> dict[str, Callable]:
    """All functions and classes that a user reaches by `pf`, and the methods of the classes, by name."""
    found: dict[str, Callable] = {}
    for prefix, room in ROOMS.items():
        for name, thing in ((name, getattr(room, name)) for name in dir(room)):
            module = getattr(thing, "__module__", None) or ""
            own = module == room.__name__ if prefix == "plots." else module.startswith("plainformer")
            if callable(thing) and own and not name.startswith("_") and thing not in found.values():
                found[prefix + name] = thing
                found |= {f"{prefix}{name}.{each}": method for each, method in _methods(thing)}
    return found


def _methods(thing) -> Iterator[tuple[str, Callable]]:
    """The public methods of a class; those that `PositionScheme` itself has do nothing with what they are given, and
    those of a mask and of a kernel are called by layers, with what these have looked at."""
    is_asked = isinstance(thing, type) and not issubclass(thing, BaseException | pf.attention.Mask | AttentionKernel)
    for name in dir(thing) if is_asked else ():
        method = getattr(thing, name)
        ours = inspect.isroutine(method) and (getattr(method, "__module__", "") or "").startswith("plainformer")
        if ours and (name == "__call__" or name[0] != "_") and method is not getattr(PositionScheme, name, None):
            yield name, method


def parameters(function: Callable) -> dict[str, Any]:
    """The annotation of each parameter, of those that have a name."""
    if isinstance(function, type) and issubclass(function, BaseException):
        return {}
    given = inspect.signature(function).parameters.values()
    return {each.name: each.annotation for each in given if each.kind != each.VAR_KEYWORD and each.name != "self"}


def wrong_calls(name: str, right: dict, unannotated: Mapping[str, Any]) -> Iterator[Wrong]:
    """Every argument in turn wrong in every way, all else as in the right call."""
    function = bound(name, right)
    kinds = {each: _known(each, kind, unannotated) for each, kind in parameters(function).items()}
    for argument, kind in kinds.items():
        for what, value in POOL.items():
            if not fits(value, kind):
                yield Wrong(name, argument, what, value)
        value = right.get(argument)
        dims = _array_kind(kind)
        if dims is not None and hasattr(value, "shape"):
            for what, other in _misfits(argument, dims, value, _other_axes(argument, kinds, right)):
                yield Wrong(name, argument, what, other)


def bound(name: str, right: dict) -> Callable:
    """The function of this name, as a method of the object that the right call has as `self`."""
    return getattr(right["self"], name.rpartition(".")[2]) if "self" in right else reached(name)


def reached(name: str) -> Callable:
    """What `pf` has under this name."""
    return functools.reduce(getattr, name.split("."), pf)


def call(wrong: Wrong, right: dict) -> Answer:
    """Make one wrong call, as a user would, and say who answered."""
    given = {key: value for key, value in right.items() if key != "self"} | {wrong.argument: wrong.value}
    function = bound(wrong.name, right)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(**given)
            if isinstance(result, Iterator):
                next(result, None)
    except Exception as error:
        words = f"{type(error).__name__}: {str(error)[:200]}"
        return Answer("own" if is_own(error, wrong.argument) else "foreign", words)
    return Answer("silent", f"returned a {type(result).__name__}")


def is_own(error: Exception, argument: str) -> bool:
    """Whether an error was raised by a `raise` of the package, in a sentence that says what was expected, or of what.

    What a compiled function finds when it runs is raised by Equinox, in the package's words.
    """
    said = str(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    raised = code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    ours = code.co_filename.startswith(PACKAGE) and raised
    ours |= isinstance(error, eqx.EquinoxRuntimeError) and said.startswith("An entry of ")
    return ours and any(word in said for word in ("expected", argument, "The exercises are"))


def _known(name: str, annotation, unannotated: Mapping[str, Any]):
    return unannotated[name] if annotation is inspect.Parameter.empty else annotation


def fits(value, kind) -> bool:
    """Whether a value may be right for an annotation; in doubt, yes. A function of a test's own stands for itself."""
    if isinstance(kind, types.FunctionType):
        return kind(value)
    if kind is Any:
        return True
    if isinstance(kind, TypeVar):
        return isinstance(value, eqx.Module)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in arguments)
    if origin is Annotated and isinstance(number := kind.__metadata__[0], Number):
        kinds = int if number.whole else int | float
        return isinstance(value, kinds) and not isinstance(value, bool) and number.allowed(value)
    if origin is Literal:
        return any(value is each or (isinstance(value, str) and value == each) for each in arguments)
    if origin is type or kind is type:
        return isinstance(value, type) and issubclass(value, eqx.Module)
    if hasattr(kind, "dim_str"):
        return hasattr(value, "dtype") and (
            str(value.dtype) in kind.dtypes or ("prng_key" in kind.dtypes and "key" in str(value.dtype))
        )
    return _fits_a_class(value, origin or kind, arguments)


def _fits_a_class(value, kind, arguments) -> bool:
    if kind in (None, types.NoneType):
        return value is None
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is Callable:
        return callable(value)
    if kind is tuple:
        several = (
            Ellipsis in arguments or not arguments or (isinstance(value, Sequence) and len(value) == len(arguments))
        )
        return isinstance(value, tuple | list) and several and _each_fits(value, arguments[:1])
    if kind in (Sequence, Collection, Iterable, list):
        if isinstance(value, str):
            return arguments == (str,)
        if hasattr(value, "shape"):
            return value.ndim > 0 and not arguments
        return isinstance(value, kind) and not isinstance(value, bytes) and _each_fits(value, arguments[:1])
    if kind in (Mapping, dict):
        return isinstance(value, Mapping)
    return isinstance(value, kind)


def _each_fits(values, kinds: tuple) -> bool:
    return not kinds or all(fits(each, kinds[0]) for each in values)


def _array_kind(kind):
    """The array that an annotation asks for, if it is one."""
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    arrays = [each for each in options if hasattr(each, "dim_str")]
    return arrays[0] if len(arrays) == 1 else None


def _other_axes(argument: str, kinds: dict, right: dict) -> set[str]:
    """The axes whose size another argument of the call says, or the object itself."""
    held = right.get("self")
    fields = dataclasses.fields(held) if dataclasses.is_dataclass(held) else ()
    given = [kind for name, kind in kinds.items() if name != argument and hasattr(right.get(name), "shape")]
    given += [field.type for field in fields if hasattr(getattr(held, field.name), "shape")]
    axes = {axis for kind in given if (array := _array_kind(kind)) is not None for axis in array.dim_str.split()}
    return axes | {name for name in ("d_model", "capacity", "kv_heads") if hasattr(held, name)}


def _misfits(name: str, kind, array, others: set[str]) -> Iterator[tuple[str, Any]]:
    """The array as a list, with other numbers, with an axis more or less, and longer along each axis that is known."""
    array, axes = np.asarray(array), kind.dim_str.split()
    rows = [axis for axis in axes if not axis.startswith("*")]
    if array.ndim:
        yield "a nested list", array.tolist()
    for dtype in DTYPES:
        if dtype not in kind.dtypes:
            yield dtype, jnp.asarray(array.astype(dtype))
    if rows == axes:
        yield "an axis more", jnp.asarray(array[None])
    if rows:
        yield "an axis less", jnp.asarray(array[(0,) * (array.ndim - len(rows) + 1)])
    for place, axis in enumerate(reversed(rows), start=1):
        if axis in others or rows.count(axis) > 1:
            yield f"another {axis}", jnp.asarray(np.concatenate([array, array.take([0], axis=-place)], axis=-place))
    if name in NAMES_OF_IDS and "int32" in kind.dtypes:
        yield "an id below 0", jnp.asarray(array - 1000)
