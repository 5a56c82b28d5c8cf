"""One wording for what is wrong with an argument: what came, what was expected, what to try."""

from collections.abc import Collection, Sequence

import jax
import jax.numpy as jnp
import numpy as np


def check_axes(name: str, array, hint: str = "", **axes: int | None) -> None:
    """Raise unless `array` has the named axes, in this order.

    **Arguments**

    - `name`: the argument's name, for the message.
    - `array`: anything with a `shape`.
    - `hint`: what to try, if the guess made here is not good enough.
    - `axes`: the name of each axis with the size it must have; `None` for any size.

    **Raises** `ValueError` that gives the shape that came, the axes that were expected and the likely cause;
    `TypeError` if it is not an array at all.
    """
    if not hasattr(array, "shape"):
        raise TypeError(
            f"{name} is a {type(array).__name__}; expected an array with axes {_spell(axes)}. Try jnp.asarray({name})."
        )
    shape = tuple(array.shape)
    if len(shape) == len(axes) and all(size in (None, got) for size, got in zip(axes.values(), shape, strict=True)):
        return
    raise ValueError(
        f"{name} has shape {shape}; expected {_spell(axes)}. {hint or _likely_cause(name, shape, axes)}".rstrip()
    )


def as_floats(name: str, array, **axes: int | None) -> jax.Array:
    """Give `array` as a JAX array; raise as `check_axes` does if axes are named, `TypeError` if it holds no floats.

    Results have the dtype of what came: as whole numbers they would lose all behind the point, silently.
    """
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
    swapped = _likely_cause(name, mask.shape, axes) if mask.ndim == len(axes) else ""
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


def check_positive(**sizes: int) -> None:
    """Raise `ValueError` unless each size is a whole number of at least one; `TypeError` if not a whole number."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise TypeError(f"{name} is {size!r}; expected a whole number, at least 1.")
        if size < 1:
            raise ValueError(f"{name} is {size}; expected at least 1.")


def check_fraction(**rates: float) -> None:
    """Raise `ValueError` unless each rate is at least 0 and below 1; `TypeError` if it is no number."""
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


def _spell(axes: dict[str, int | None]) -> str:
    words = [name if size is None else f"{name}={size}" for name, size in axes.items()]
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _likely_cause(name: str, shape: tuple[int, ...], axes: dict[str, int | None]) -> str:
    if len(shape) == len(axes) + 1:
        return "There is one axis too many: if the first one is a batch, map over it with jax.vmap."
    if len(shape) == len(axes) - 1:
        return f"There is one axis too few: for a single row, pass {name}[None]."
    turned = zip(axes.values(), reversed(shape), strict=False)
    if len(shape) == len(axes) == 2 and all(size in (None, got) for size, got in turned):
        return f"The axes look swapped: rows are tokens, so try {name}.T."
    return ""


def check_token_ids(ids, vocab_size: int | None = None) -> list[int]:
    """Give token ids as a list of Python integers, or raise if one of them is out of range.

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
