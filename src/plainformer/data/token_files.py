"""Token ids on the disk, for texts larger than memory: written as they come, read where they are wanted."""

import reprlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO

import numpy as np

from plainformer.checks import Positive, checked
from plainformer.data.files import Name, as_path, replacing
from plainformer.data.lists import check_token_ids

CHUNK = 2**16  # how many ids are in memory at a time


@checked
def write_tokens(path: Name, ids: Iterable, vocab_size: Positive) -> np.memmap:
    """Write a stream of token ids to a file, never all of them in memory, and return them as `open_tokens` does.

    The file is one of NumPy's own, `.npy`, of two bytes for each token if there are at most 65,536 in the vocabulary,
    or else four. It is written under another name and then renamed: a crash leaves the old file or the new one.

    Args:
        path: where to write.
        ids: token ids, or lists or arrays of them, such as
            `(vocabulary.encode(piece) for piece in stream_text("text.txt"))`, or, for documents that windows shall not
            cross, `([*vocabulary.encode(document), separator] for document in documents)`.
        vocab_size: the number of tokens in the vocabulary.

    Raises:
        ValueError: naming the place, if an id is not one of the vocabulary's; if there is no id.
        TypeError: naming the place, if an id is no whole number.
        OSError: naming `path`, if it cannot be written.
    """
    dtype, count = np.dtype(np.uint16 if vocab_size <= 2**16 else np.int32), 0
    with replacing(path) as file:
        _write_header(file, dtype, count)
        for piece in _pieces(ids):
            try:
                array = np.asarray(check_token_ids(piece, vocab_size), dtype)
            except (ValueError, TypeError) as error:
                raise type(error)(f"After {count} ids: {error}") from error
            file.write(array.tobytes())
            count += len(array)
        if not count:
            raise ValueError("ids holds no token; expected at least one. Was the stream read before?")
        file.seek(0)
        _write_header(file, dtype, count)
    return open_tokens(path)


@checked
def open_tokens(path: Name) -> np.memmap:
    """Open a file of `write_tokens`, to be read where it is asked for: an array that `random_windows` takes as a text.

    Raises:
        FileNotFoundError: if there is no such file.
        IsADirectoryError: if it is a folder.
        ValueError: if it is no such file, or cut short.
    """
    path = as_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}. Looked in {path.parent.resolve()}.")
    hint = "Write one with write_tokens()."
    try:
        tokens = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError(f"{path} is no file of tokens: {error}. Is it cut short? {hint}") from error
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
        found = f"an array of {tokens.dtype} and shape {tokens.shape}"
        raise ValueError(f"{path} holds {found}; expected one axis of whole numbers. {hint}")
    return tokens


def _pieces(ids) -> Iterator:
    """The ids as lists or arrays: those that were given, but of single ids and of a large array many at a time."""
    if getattr(ids, "shape", ()):
        yield from (ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK))
        return
    if isinstance(ids, str) or not isinstance(ids, Iterable) or getattr(ids, "shape", None) == ():
        hint = " Encode it first: vocabulary.encode(…)." if isinstance(ids, str) else ""
        given = reprlib.repr(ids)  # the beginning and the end of a long text
        raise TypeError(f"ids is {given}; expected ids, or lists or arrays of them, one after the other.{hint}")
    more = iter(ids)
    for first in more:
        if isinstance(first, int | np.integer) or getattr(first, "shape", None) == ():
            yield [first, *islice(more, CHUNK - 1)]
        else:
            yield from _pieces(first)


def _write_header(file: BinaryIO, dtype: np.dtype, count: int) -> None:
    """NumPy's header, which leaves room for a larger number, so that it can be written again when it is known."""
    header = {"shape": (count,), "fortran_order": False, "descr": np.lib.format.dtype_to_descr(dtype)}
    np.lib.format.write_array_header_1_0(file, header)
