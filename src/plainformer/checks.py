"""One wording for what is wrong with an argument: its name, what it is, what was expected, what to try."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from types import NoneType, UnionType
from typing import TypeVar, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

Function = TypeVar("Function", bound=Callable)

MASK = "a Boolean array, True where a query may attend to a key."
# What to try, by the argument's name, where its shape or its type alone does not tell.
HINTS = {
    "mask": "For padding use padding_mask(is_token, q_seq); for causal order use causal_mask(seq_len).",
    "context_mask": "For padding use padding_mask(is_token, q_seq).",
    "image": "For a grey image, pass image[:, :, None].",
    **dict.fromkeys(["is_token", "is_source", "is_maskable", "segments"], "One for each token."),
    "targets": "One target per row of logits.",
    "scheme": "Pass one of chapter 05, such as RotaryPositions(), or NoPositions() for none.",
}
_inside: ContextVar[bool] = ContextVar("_inside", default=False)


def checked(function: Function) -> Function:
    """Hold a function's arguments to their annotations, such as `Float[Array, "*batch seq d_model"]`.

    Axes of one name have one size; where `self` has an attribute of that name, or a field with such an axis, it is
    that size. What the function calls in turn is not checked again. NumPy's arrays become JAX's.

    **Raises** `ValueError` for another shape, `TypeError` for another kind of numbers or of object, each with the
    likely cause.
    """
    signature = inspect.signature(function)
    kinds = {name: _kind(parameter.annotation) for name, parameter in signature.parameters.items() if name != "key"}

    @functools.wraps(function)
    def call(*args, **kwargs):
        if _inside.get():
            return function(*args, **kwargs)
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}(): {error}") from None
        sizes = _sizes_of(given.arguments.get("self"), kinds)
        for name, argument in given.arguments.items():
            kind, optional = kinds.get(name, (None, True))
            if kind is None or (optional and argument is None):
                continue
            if hasattr(kind, "dim_str"):
                sizes = _sized(name, argument, kind.dim_str.split(), sizes, kind.dtypes)
                given.arguments[name] = _as_jax(name, argument)
            else:
                _check_part(name, argument, kind)
        mark = _inside.set(True)
        try:
            return function(*given.args, **given.kwargs)
        finally:
            _inside.reset(mark)

    return cast(Function, call)


def _kind(annotation):
    """What `X` or `X | None` asks for, a jaxtyping type or a module's class or else `None`; and if `None` will do."""
    options = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    kind, *others = [each for each in options if each is not NoneType]
    known = hasattr(kind, "dim_str") or (isinstance(kind, type) and issubclass(kind, eqx.Module))
    return kind if known and not others else None, NoneType in options


def _sizes_of(module, kinds: dict) -> dict:
    """The sizes that an object knows of the axes in these kinds, by its attributes and by its own arrays."""
    axes = {axis for kind, _ in kinds.values() for axis in getattr(kind, "dim_str", "").split()}
    sizes = {axis: size for axis in axes if isinstance(size := getattr(module, axis, None), int)}
    for field in dataclasses.fields(module) if dataclasses.is_dataclass(module) else ():
        kind, _ = _kind(field.type)
        shape = getattr(getattr(module, field.name, None), "shape", None)
        if hasattr(kind, "dim_str") and shape is not None:
            sizes = _bound(shape, kind.dim_str.split(), sizes) or sizes
    return sizes


def _bound(shape: tuple[int, ...], axes: list[str], sizes: dict) -> dict | None:
    """The sizes with those of a shape that has these axes; `None` if it has others.

    `*batch` are any number of axes, in front of all others, and `*#batch` those that broadcast to the batch.
    """
    sizes, lead = dict(sizes), axes[0] if axes and axes[0].startswith("*") else ""
    names = axes[1:] if lead else axes
    batch, rows = shape[: len(shape) - len(names)], shape[len(shape) - len(names) :]
    if len(rows) != len(names) or (batch and not lead):
        return None
    if "#" in lead:
        if not _broadcasts(batch, sizes.get(lead[2:], batch)):
            return None
    elif lead and sizes.setdefault(lead[1:], batch) != batch:
        return None
    fits = [sizes.setdefault(name, size) == size for name, size in zip(names, rows, strict=True)]
    return sizes if all(fits) else None


def _broadcasts(batch: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(batch), reversed(to), strict=False)
    return len(batch) <= len(to) and all(size in (1, other) for size, other in pairs)


def _sized(name: str, array, axes: list[str], sizes: dict, dtypes=(), hint: str = "") -> dict:
    """The sizes with those of an array's axes, after a look at its numbers and its shape."""
    if not isinstance(array, jax.Array | np.ndarray | np.generic):
        expected = MASK if "mask" in name else f"an array with axes {_spell(axes, sizes)}."
        hint = "Encode it first: vocabulary.encode(…)." if isinstance(array, str) else f"Try jnp.asarray({name})."
        raise TypeError(f"{name} is a {type(array).__name__}; expected {expected} {hint}")
    if dtypes and str(array.dtype) not in dtypes:
        raise TypeError(_wrong_numbers(name, array.dtype, dtypes))
    found = _bound(array.shape, axes, sizes)
    if found is None:
        hint = hint or _likely_cause(name, array.shape, axes, sizes)
        raise ValueError(f"{name} has shape {array.shape}; expected {_spell(axes, sizes)}. {hint}".rstrip())
    return found


def _as_jax(name: str, array) -> jax.Array:
    """NumPy's array as one of JAX's, which has as many bits as JAX is set to, and would wrap what they do not hold."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        dtype = jax.dtypes.canonicalize_dtype(array.dtype)
        refuse(array, array.astype(dtype) != array, name, f"whole numbers that {dtype} holds.")
    return jnp.asarray(array)


def _check_part(name: str, part, kind: type) -> None:
    """Raise `TypeError` unless a part has the methods of its kind, whichever class it is of."""
    if isinstance(part, type):
        what = part.__name__
        raise TypeError(f"{name} is the class {what}; expected an object of it: make one first, by {what}(…).")
    if not all(hasattr(part, method) for method in vars(kind) if not method.startswith("_")):
        what, hint = type(part).__name__, HINTS.get(name, "")
        raise TypeError(f"{name} is of type {what}; expected a {kind.__name__}. {hint}".rstrip())


def _wrong_numbers(name: str, dtype, dtypes) -> str:
    """What to say of an array whose numbers are of another kind."""
    if "float32" in dtypes and dtype == jnp.bool_ and name == "bias":
        return "bias is an array of bool; expected numbers to add to the scores. To hide keys, pass it as mask."
    if "float32" in dtypes:
        return f"{name} holds {dtype}; expected floats. Try {name}.astype(float)."
    if "bool" not in dtypes:
        example = "jnp.arange(5)" if "position" in name or "offset" in name else "encode()"
        return f"{name} holds {dtype}; expected whole numbers, such as {example} returns."
    if "mask" in name:
        return (
            f"{name} is an array of {dtype}; expected {MASK} "
            f"If yours holds 0 and -inf, pass {name} == 0; if it holds 0 and 1, pass {name} == 1."
        )
    return f"{name} holds {dtype}; expected bool, True for a token, False for padding. Try {name} == 1."


def _spell(axes: list[str], sizes: dict) -> str:
    """The axes in words, with the sizes that are known: `(..., seq, d_model=12)`."""
    words: list[str] = []
    for axis in axes:
        size = sizes.get(axis.strip("*#"))
        if axis.startswith("*"):
            words += ["..."] if size is None or (size and "#" in axis) else map(str, size)
        else:
            words.append(axis if size is None else f"{axis}={size}")
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _likely_cause(name: str, shape: tuple[int, ...], axes: list[str], sizes: dict) -> str:
    rows, hint = [axis for axis in axes if not axis.startswith("*")], HINTS.get(name, "")
    swapped = (*shape[:-2], *shape[:-3:-1])
    if len(rows) == 2 <= len(shape) and _bound(swapped, axes, sizes) is not None:
        return f"The axes look swapped: rows are tokens, so try {name}.mT. {hint}"
    if hint:
        return hint
    if rows != axes and _bound(shape[len(shape) - len(rows) :], rows, sizes) is not None:
        return "What stands in front is a batch: make it the same for all arguments, or map over one with jax.vmap."
    if rows == axes and len(shape) == len(rows) + 1:
        return "There is one axis too many: if the first one is a batch, map over it with jax.vmap."
    if len(shape) == len(rows) - 1:
        return f"There is one axis too few: for a single row, pass {name}[None]."
    return ""


def refuse(array, bad, name: str, expected: str):
    """Return `array`, or raise if an entry of `bad` is true: at once, or when a compiled function runs.

    **Raises** `ValueError` that names the first bad place and its value; in a compiled function, `EquinoxRuntimeError`
    that can only say what was expected.
    """
    if isinstance(bad, jax.core.Tracer) or isinstance(array, jax.core.Tracer):
        return eqx.error_if(array, bad, f"An entry of {name} is not allowed; expected {expected}")
    places = np.argwhere(bad)
    if len(places):
        place = tuple(places[0].tolist())
        value = f" is {np.asarray(array)[place]}" if np.ndim(bad) == np.ndim(array) else " is not allowed"
        raise ValueError(f"{name}{list(place) if place else ''}{value}; expected {expected}")
    return array


def check_axes(name: str, array, hint: str = "", **axes: int | tuple[int, ...] | None) -> None:
    """Raise unless `array` has the named axes, in this order, each of the given size; `None` for any.

    For what an annotation cannot say. **Raises** `ValueError` with the `hint`, or else the likely cause; `TypeError`
    if it is not an array at all.
    """
    sizes = {axis.strip("*"): size for axis, size in axes.items() if size is not None}
    _sized(name, array, list(axes), sizes, hint=hint)


def check_length(name: str, length: int, longest: int, limit: str) -> None:
    """Raise `ValueError` unless a text has at least one token and at most as many as a model reads."""
    if not 1 <= length <= longest:
        hint = "Cut it, or make a model that reads more." if length else "Start with at least one token."
        raise ValueError(f"{name} has {length} tokens; expected 1 to {limit}={longest}. {hint}")


def as_number(name: str, number, example: str) -> float:
    """Return a number as Python's own; raise `TypeError` if it is not one, or is traced and has no value yet."""
    if isinstance(number, jax.core.Tracer):
        raise TypeError(
            f"{name} is traced, so that it has no value yet; expected a number known before compiling, such as "
            f"{example}. Write it into the function, or name it in static_argnames of jax.jit."
        )
    is_number = hasattr(number, "__float__") and np.ndim(number) == 0 and not isinstance(number, bool | np.bool_)
    if not is_number:
        raise TypeError(f"{name} is {number!r}; expected a number, such as {example}.")
    return float(number)


def check_positive(**sizes: int) -> None:
    """Raise `ValueError` unless each size is a whole number of at least one; `TypeError` if not a whole number."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise TypeError(f"{name} is {size!r}; expected a whole number, at least 1.")
        if size < 1:
            raise ValueError(f"{name} is {size}; expected at least 1.")


def check_fraction(**rates: float) -> None:
    """Raise `ValueError` unless each rate is at least 0 and below 1; `TypeError` if it is not a number."""
    for name, rate in rates.items():
        if not 0 <= as_number(name, rate, "0.1") < 1:
            hint = f" For {rate:g} per cent, pass {rate / 100:g}." if 1 <= rate < 100 else ""
            raise ValueError(f"{name} is {rate}; expected a probability of at least 0 and below 1.{hint}")


def check_choice(name: str, choice: str, choices: Collection[str]) -> None:
    """Raise `ValueError` unless `choice` is one of `choices`."""
    if choice not in choices:
        raise ValueError(f"{name} is {choice!r}; expected one of {', '.join(map(repr, choices))}.")


def check_flags(**flags: bool) -> None:
    """Raise `TypeError` unless each flag is `True` or `False`."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} is {flag!r}; expected True or False.")


def check_list(name: str, given, expected: str) -> None:
    """Raise `TypeError` unless `given` is a sequence or an array, such as a list, but no set and no single number."""
    if isinstance(given, str):
        raise TypeError(f"{name} is a string; expected a list of {expected}. Encode it first: vocabulary.encode(…).")
    if not isinstance(given, Sequence) and not hasattr(given, "shape"):
        raise TypeError(f"{name} is {given!r}; expected a list of {expected}.")


def check_names(what: str, names: Collection[str], *, ordered: bool = True) -> None:
    """Raise `TypeError` unless `names` is a collection of strings, in an order if asked; `ValueError` for ""."""
    if isinstance(names, str):
        raise TypeError(f"{what} is the string {names!r}; expected a collection of names, such as [{names!r}].")
    if not isinstance(names, Collection):
        raise TypeError(f"{what} is {names!r}; expected a collection of names, such as a list; an empty one for none.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} holds {name!r}; expected names, each a string.")
    if ordered and isinstance(names, set | frozenset):
        raise TypeError(
            f"{what} is a set, whose order differs from run to run; expected a list, since ids follow its order: "
            f"such as {sorted(names)}."
        )
    if "" in names:
        raise ValueError(f"{what} holds an empty name.")


def check_token_ids(ids, vocab_size: int | None = None) -> list[int]:
    """Return token ids, a sequence or an array of one axis, as a list of Python integers.

    **Raises** `ValueError` that names the first id that is not below `vocab_size`, or, without one, that int32 does not
    hold; or for a batch of sequences. `TypeError` if ids are not whole numbers.
    """
    if isinstance(ids, str):
        raise TypeError("ids is a string; expected token ids. Encode it first: vocabulary.encode(…).")
    try:
        array = np.asarray(ids)
    except ValueError:  # NumPy makes no array of rows of different lengths
        raise ValueError(
            "ids holds sequences of different lengths; expected one sequence of ids, not a batch."
        ) from None
    if array.shape == (0,):
        return []
    check_axes("ids", array, f"For a single id, pass [{ids}]." if array.ndim == 0 else "", seq=None)
    if array.dtype.kind in ("f", "O") and all(isinstance(number, int) for number in ids):
        array = np.asarray(ids, dtype=object)  # whole numbers, but of more bits than NumPy's own integers have
    elif array.dtype.kind not in "iu":
        raise TypeError(f"ids are {array.dtype}; expected whole numbers, such as encode() returns.")
    end, reason = 2**31, "the whole numbers that int32 holds."
    if vocab_size is not None:
        end, reason = vocab_size, f"as there are {vocab_size} tokens. Were these ids made by another vocabulary?"
    return refuse(array, (array < 0) | (array >= end), "ids", f"0 to {end - 1}, {reason}").tolist()
