"""Lists that readers give: of token ids, of names, or of anything."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from plainformer.checks import check_axes, ids_in_range


def check_list(name: str, given, expected: str) -> None:
    """Raise `TypeError` unless `given` is a sequence or an array, such as a list, but no set and no single number."""
    if isinstance(given, str | bytes):
        raise TypeError(f"{name} is a string; expected a list of {expected}. Encode it first: vocabulary.encode(…).")
    if not isinstance(given, Sequence) and not getattr(given, "shape", ()):
        raise TypeError(f"{name} is {given!r}; expected a list of {expected}.")


def check_names(what: str, names: Collection[str], *, ordered: bool = True) -> None:
    """Raise `TypeError` unless `names` is a collection of strings, in an order if asked; `ValueError` for ""."""
    if isinstance(names, str):
        raise TypeError(f"{what} is the string {names!r}; expected a collection of names, such as [{names!r}].")
    if not isinstance(names, Collection) or getattr(names, "shape", None) == ():
        raise TypeError(f"{what} is {names!r}; expected a collection of names, such as a list; an empty one for none.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} holds {name!r}; expected names, each a string.")
    if ordered and isinstance(names, set | frozenset):
        raise TypeError(f"{what} is a set, whose order differs each time; expected a list, such as {sorted(names)}.")
    if "" in names:
        raise ValueError(f"{what} holds an empty name.")


def check_once(name: str, things: Iterable) -> None:
    """Raise `ValueError` if one of the things is there more than once."""
    for thing, times in Counter(things).items():
        if times > 1:
            raise ValueError(f"{name} holds {thing!r} twice; expected each once.")


def check_token_ids(ids, vocab_size: int | None = None, name: str = "ids") -> list[int]:
    """Return token ids, a sequence or an array of one axis, as a list of Python integers; `name` is for messages.

    Raises:
        ValueError: for a batch, or naming the first id that is not below `vocab_size`, or, without one, that int32 does
            not hold.
        TypeError: if ids are not whole numbers.
    """
    if isinstance(ids, str):
        raise TypeError(f"{name} is a string; expected token ids. Encode it first: vocabulary.encode(…).")
    if isinstance(ids, Iterator):
        what = type(ids).__name__
        raise TypeError(f"{name} is of type {what}, which can be read once; expected a list: pass list({name}).")
    if isinstance(ids, list | tuple) and any(isinstance(number, bool) for number in ids):
        raise TypeError(f"{name} holds True or False; expected whole numbers, such as encode() returns.")
    try:
        array = np.asarray(ids)
    except TypeError:  # as for a random key
        raise TypeError(f"{name} is of type {type(ids).__name__}; expected token ids, such as [1, 2].") from None
    except ValueError:
        raise ValueError(f"{name} holds sequences of different lengths; expected one sequence, not a batch.") from None
    if array.shape == (0,):
        return []
    if array.ndim == 0 and array.dtype == object:  # as for a set
        raise TypeError(f"{name} is of type {type(ids).__name__}; expected token ids, such as [1, 2].")
    check_axes(name, array, f"For a single id, pass [{ids}]." if array.ndim == 0 else "", seq=None)
    if array.dtype.kind in ("f", "O") and all(isinstance(number, int) for number in ids):
        array = np.asarray(ids, dtype=object)  # whole numbers, but of more bits than NumPy's own integers have
    elif array.dtype.kind not in "iu":
        raise TypeError(f"{name} are {array.dtype}; expected whole numbers, such as encode() returns.")
    return ids_in_range(array, vocab_size, name).tolist()
