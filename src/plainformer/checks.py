"""One wording for what is wrong with an argument: its name, what it is, what was expected, what to try."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from typing import TypeVar, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

Function = TypeVar("Function", bound=Callable)

MASK = "a Boolean array, True where a query may attend to a key."
# What to try, by the argument's name, where its shape alone does not tell.
HINTS = {
    "mask": "For padding use padding_mask(is_token, q_seq); for causal order use causal_mask(seq_len).",
    "context_mask": "For padding use padding_mask(is_token, q_seq).",
    "bias": "It is added to the scores.",
    "image": "For a grey image, pass image[:, :, None].",
    "is_token": "One for each token.",
    "is_source": "One for each token.",
    "is_maskable": "One for each token.",
    "segments": "One for each token.",
    "targets": "One target per row of logits.",
}
_inside: ContextVar[bool] = ContextVar("_inside", default=False)


def checked(function: Function) -> Function:
    """Hold a function's array arguments to their annotations, such as `Float[Array, "*batch seq d_model"]`.

    Axes of one name have one size; where `self` has an attribute of that name, or a field with such an axis, it is
    that size. What the function calls in turn is not checked again. NumPy's arrays become JAX's.

    **Raises** `ValueError` for another shape, `TypeError` for another kind of numbers, each with the likely cause.
    """
    signature = inspect.signature(function)
    found = {name: _array_type(parameter.annotation) for name, parameter in signature.parameters.items()}
    types = {name: kind for name, kind in found.items() if kind is not None and name != "key"}

    @functools.wraps(function)
    def call(*args, **kwargs):
        if _inside.get():
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        sizes = _Sizes(given.arguments.get("self"))
        for name, kind in types.items():
            if given.arguments.get(name) is not None:
                given.arguments[name] = _fitting(name, given.arguments[name], kind, sizes)
        mark = _inside.set(True)
        try:
            return function(*given.args, **given.kwargs)
        finally:
            _inside.reset(mark)

    return cast(Function, call)


class _Sizes(dict):
    """The size of each axis by its name, or `None`; an object's attributes and arrays tell what they know."""

    def __init__(self, module=None):
        super().__init__()
        self.module = module
        for field in dataclasses.fields(module) if dataclasses.is_dataclass(module) else ():
            kind, shape = _array_type(field.type), getattr(getattr(module, field.name, None), "shape", ())
            if kind is not None and len(axes := kind.dim_str.split()) == len(shape):
                self.update(zip(axes, shape, strict=True))

    def __missing__(self, axis: str):
        size = getattr(self.module, axis, None)
        return size if isinstance(size, int) else None


def _array_type(annotation):
    """The jaxtyping type in an annotation `X` or `X | None`; `None` if there is none."""
    return next((each for each in (annotation, *get_args(annotation)) if hasattr(each, "dim_str")), None)


def _fitting(name: str, array, kind, sizes: _Sizes):
    """The array, after a look at its numbers and its shape; the sizes of its axes are kept for the next argument."""
    axes = kind.dim_str.split()
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        expected = MASK if "mask" in name else f"an array with axes {_spell(axes, sizes)}."
        hint = "Encode it first: vocabulary.encode(…)." if isinstance(array, str) else f"Try jnp.asarray({name})."
        raise TypeError(f"{name} is a {type(array).__name__}; expected {expected} {hint}")
    if str(array.dtype) not in kind.dtypes:
        raise TypeError(_wrong_numbers(name, array.dtype, kind.dtypes))
    shape = tuple(array.shape)
    if not _fits(shape, axes, sizes):
        hint = f"{_likely_cause(name, shape, axes, sizes)} {HINTS.get(name, '')}".strip()
        raise ValueError(f"{name} has shape {shape}; expected {_spell(axes, sizes)}. {hint}".rstrip())
    return jnp.asarray(array) if isinstance(array, np.ndarray) else array


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


def _fits(shape: tuple[int, ...], axes: list[str], sizes: _Sizes) -> bool:
    """Whether a shape has these axes: `*batch` are any number of them, `*#batch` those that broadcast to the batch."""
    found: dict[str, int | tuple[int, ...]] = {}
    if axes and axes[0].startswith("*"):
        lead, axes = axes[0], axes[1:]
        cut = max(len(shape) - len(axes), 0)
        batch, shape, known = shape[:cut], shape[cut:], sizes[lead.strip("*#")]
        if known is not None and not (_broadcasts(batch, known) if "#" in lead else batch == known):
            return False
        if "#" not in lead:
            found[lead.strip("*")] = batch
    if len(shape) != len(axes):
        return False
    for axis, size in zip(axes, shape, strict=True):
        if found.get(axis, sizes[axis]) not in (None, size):
            return False
        found[axis] = size
    sizes.update(found)
    return True


def _broadcasts(batch: tuple[int, ...], known: tuple[int, ...]) -> bool:
    return len(batch) <= len(known) and all(
        size in (1, other) for size, other in zip(reversed(batch), reversed(known), strict=False)
    )


def _spell(axes: list[str], sizes: _Sizes) -> str:
    """The axes in words, with the sizes that are known: `(..., seq, d_model=12)`."""
    words: list[str] = []
    for axis in axes:
        size = sizes[axis.strip("*#")]
        if axis.startswith("*"):
            words += ["..."] if size is None or (size and "#" in axis) else map(str, size)
        else:
            words.append(axis if size is None else f"{axis}={size}")
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _likely_cause(name: str, shape: tuple[int, ...], axes: list[str], sizes: _Sizes) -> str:
    rows = [axis for axis in axes if not axis.startswith("*")]
    has_batch = len(rows) < len(axes)
    if len(shape) > len(rows) and (not has_batch or sizes[axes[0].strip("*#")] == ()):
        return "There is one axis too many: if the first one is a batch, map over it with jax.vmap."
    if len(shape) == len(rows) - 1:
        return f"There is one axis too few: for a single row, pass {name}[None]."
    last = [sizes[axis] for axis in rows[-2:]]
    if (
        len(shape) >= 2
        and len(rows) == 2
        and all(size in (None, got) for size, got in zip(last, reversed(shape[-2:]), strict=True))
    ):
        return f"The axes look swapped: rows are tokens, so try {name}.mT."
    return ""


def refuse(array, bad, name: str, expected: str):
    """Return `array`, or raise if an entry of `bad` is true: at once, or when a compiled function runs.

    **Raises** `ValueError` that names the first bad place and its value; in a compiled function, `EquinoxRuntimeError`
    that can only say what was expected.
    """
    if isinstance(bad, jax.core.Tracer) or isinstance(array, jax.core.Tracer):
        return eqx.error_if(array, bad, f"An entry of {name} is not allowed; expected {expected}")
    bad = np.asarray(bad)
    if bad.any():
        place = tuple(int(each) for each in np.argwhere(bad)[0])
        value = f" is {np.asarray(array)[place]}" if bad.shape == np.shape(array) else " is not allowed"
        raise ValueError(f"{name}{list(place) if place else ''}{value}; expected {expected}")
    return array


def check_length(name: str, length: int, longest: int, limit: str) -> None:
    """Raise `ValueError` unless a text has at least one token and at most as many as a model reads."""
    if not 1 <= length <= longest:
        hint = "Cut it, or make a model that reads more." if length else "Start with at least one token."
        raise ValueError(f"{name} has {length} tokens; expected 1 to {limit}={longest}. {hint}")


def check_axes(name: str, array, hint: str = "", **axes: int | None) -> None:
    """Raise unless `array` has the named axes, in this order, each of the given size; `None` for any.

    For what an annotation cannot say. **Raises** `ValueError` with the likely cause, or else the `hint`; `TypeError`
    if it is not an array at all.
    """
    sizes = _Sizes()
    sizes.update(axes)
    if not hasattr(array, "shape"):
        spelt = _spell(list(axes), sizes)
        raise TypeError(
            f"{name} is a {type(array).__name__}; expected an array with axes {spelt}. Try jnp.asarray({name})."
        )
    if not _fits(shape := tuple(array.shape), list(axes), sizes):
        cause = hint or _likely_cause(name, shape, list(axes), sizes)
        raise ValueError(f"{name} has shape {shape}; expected {_spell(list(axes), sizes)}. {cause}".rstrip())


def as_floats(name: str, array, **axes: int | None) -> jax.Array:
    """Return `array` as a JAX array; raise as `check_axes` does, and `TypeError` if it does not hold floats."""
    if axes:
        check_axes(name, array, "", **axes)
    array = jnp.asarray(array)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"{name} holds {array.dtype}; expected floats. Try {name}.astype(float).")
    return array


def as_number(name: str, number, example: str) -> float:
    """Give a number as Python's own; raise `TypeError` if it is none, or if it is traced and has no value yet."""
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
    """Return token ids as a list of Python integers, or raise if one of them is out of range.

    **Arguments**

    - `ids`: a sequence or array of whole numbers, one axis.
    - `vocab_size`: every id must be at least 0 and below this; `None` for all that int32 holds.

    **Returns** the ids.

    **Raises** `ValueError` that names the first bad id and its place, or the wrong shape; `TypeError` if the ids are
    not whole numbers.
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
    end = 2**31 if vocab_size is None else vocab_size
    outside = np.flatnonzero((array < 0) | (array >= end))
    if outside.size:
        place = outside[0]
        reason = (
            "the whole numbers that int32 holds."
            if vocab_size is None
            else f"as there are {vocab_size} tokens. Were these ids made by another vocabulary?"
        )
        raise ValueError(f"ids[{place}] is {array[place]}; expected 0 to {end - 1}, {reason}")
    return array.tolist()


# TEMP
def check_mask(mask, name: str = "mask", **axes: int | None) -> None:
    """Raise unless `mask` is `None` or a Boolean array with the named axes.

    **Raises** `TypeError` if it is not Boolean, `ValueError` if it has the wrong shape.
    """
    if mask is None:
        return
    expected = "expected a Boolean array, True where a query may attend to a key."
    if not hasattr(mask, "dtype"):
        raise TypeError(f"{name} is a {type(mask).__name__}; {expected} Try jnp.asarray({name}).")
    if mask.dtype != np.bool_:
        raise TypeError(
            f"{name} is an array of {mask.dtype}; {expected} "
            f"If yours holds 0 and -inf, pass {name} == 0; if it holds 0 and 1, pass {name} == 1."
        )
    swapped = ""
    hint = "For padding use padding_mask(is_token, q_seq); for causal order use causal_mask(seq_len)."
    check_axes(name, mask, f"{swapped} {hint}".lstrip(), **axes)



def check_bias(bias, **axes: int | None) -> None:
    """Raise `ValueError` unless `bias` has the named axes, `TypeError` if it is a mask rather than numbers to add."""
    hint = "It is added to the scores of one head; for all heads, map over it with jax.vmap."
    check_axes("bias", bias, hint, **axes)
    if bias.dtype == np.bool_:
        raise TypeError(
            "bias is an array of bool; expected numbers to add to the scores. To hide keys, pass it as mask."
        )


