"""Places in the arrays of a model, and what may be put there: indices and numbers, held to the array's shape."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from plainformer.checks import native, refuse

OF_HEADS = ("queries", "keys", "values", "scores", "weights", "heads")  # one text has them as (heads, seq, …)


def place_in(name: str, index, shape: tuple[int, ...]) -> tuple:
    """Return an index into an array of this name and shape as JAX takes it.

    Raises:
        ValueError: if there is nothing, which JAX would pass over.
        TypeError: if a traced part holds other than whole numbers.
        EquinoxRuntimeError: if there is nothing at a traced number, which has a value only when the program runs.
    """
    parts: list[Any] = [_as_array(part) if isinstance(part, list) else part for part in _parts(index)]
    traced = [at for at, part in enumerate(parts) if isinstance(part, jax.core.Tracer)]
    known = [np.zeros(part.shape, int) if at in traced else part for at, part in enumerate(parts)]
    if not _is_something(known, shape):
        raise ValueError(f"{name} has shape {shape} and nothing at the place {index}; {_instead(name, known, shape)}")
    taken = [_axes_taken(part) for part in known]
    end = next((at for at, part in enumerate(known) if part is ...), len(known))
    for at in traced:
        size = shape[sum(taken[:at]) if at < end else len(shape) - sum(taken[at:])]
        parts[at] = _within(parts[at], size, f"the place in {name}")
    return tuple(parts)


def axes_of_one(name: str) -> int:
    """Return how many axes an array of a stack has in the run on one text: those of heads, or of rows."""
    return 3 if name.rpartition(".")[2] in OF_HEADS else 2


def check_batch_axis(name: str, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` unless an array has an axis of texts in front, and some of them."""
    is_known = "stack." in name and name.endswith((*OF_HEADS, "input", "output", "attention", "hidden"))
    if len(shape) <= (axes_of_one(name) if is_known else 0):
        raise ValueError(f"{name} has shape {shape}, of one text; expected a batch: pf.look(model, ids[None]).")
    if not shape[0]:
        raise ValueError(f"{name} has shape {shape}, of no text; expected a batch of at least one.")


def as_numbers(name: str, given) -> Array:
    """Return what is given as an array; raise `TypeError` if it is none, of real numbers."""
    try:
        array = jnp.asarray(native(given))
    except (TypeError, ValueError):
        raise TypeError(f"{name} is of type {type(given).__name__}; expected an array of numbers.") from None
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.bool_, jnp.integer, jnp.floating)):
        raise TypeError(f"{name} holds {array.dtype}; expected real numbers.")
    return array


def _parts(index) -> tuple:
    return index if isinstance(index, tuple) else (index,)


def _as_array(numbers: list) -> Array | np.ndarray:
    """A list as an array, of NumPy if its numbers are known, since JAX would trace them within `jit`."""
    is_traced = any(isinstance(each, jax.core.Tracer) for each in jax.tree.leaves(numbers))
    return (jnp if is_traced else np).asarray(numbers)


def _is_something(parts: Sequence, shape: tuple[int, ...]) -> bool:
    """Whether an array of this shape has anything at an index."""
    try:
        return np.broadcast_to(np.zeros(()), shape)[tuple(parts)].size > 0
    except IndexError:
        return False


def _axes_taken(part) -> int:
    """How many axes of an array a part of an index stands for."""
    if part is None or part is ... or isinstance(part, bool):
        return 0
    return np.ndim(part) if getattr(part, "dtype", None) == jnp.bool_ else 1


def _within(numbers: Array, size: int, what: str) -> Array:
    """Traced numbers, which `refuse` holds to an axis of this size."""
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise TypeError(f"{what} is traced and holds {numbers.dtype}; expected whole numbers.")
    numbers = numbers.astype(jnp.int32)  # of 8 bits they could not be compared with every size
    return refuse(numbers, (numbers < -size) | (numbers >= size), what, f"an index up to {size - 1}.")


def _instead(name: str, parts: Sequence, shape: tuple[int, ...]) -> str:
    """What was expected in place of an index at which there is nothing."""
    rest = [slice(None)] * (axes_of_one(name) - sum(map(_axes_taken, parts)))
    of_each = (..., *parts, *rest)
    if len(shape) > axes_of_one(name) and not any(part is ... for part in parts) and _is_something(of_each, shape):
        spelled = str(of_each)[1:-1].replace("slice(None, None, None)", ":").replace("Ellipsis", "...")
        return f"the first axis is the batch: try np.s_[{spelled}]."
    ends = f"up to {shape[-2] - 1} on the axis before the last" if len(shape) > 1 else f"up to {shape[-1] - 1}"
    return f"expected an index within it, {ends}. Try np.s_[..., 0, :], the first token of a stream."
