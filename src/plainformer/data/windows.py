"""Windows: equally long pieces of one long text, each with the tokens that follow its own.

A text may be many documents, one after the other, with a token between them, the `separator`. If it is named, no
window goes on from one document into the next: it ends with the separator as its last target, and what is left of it
counts for nothing. A window that begins at a separator reads it as the start of the document behind it.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import overload

import jax.numpy as jnp
import numpy as np

from plainformer.checks import Natural, Positive, check_axes, checked, refuse
from plainformer.data.lists import check_token_ids
from plainformer.data.named_batches import PaddedWindows, Windows


@overload
def random_windows(
    tokens, seq_len: int, batch_size: int, *, separator: None = None, seed: int = 0
) -> Callable[[int], Windows]: ...


@overload
def random_windows(
    tokens, seq_len: int, batch_size: int, *, separator: int, seed: int = 0
) -> Callable[[int], PaddedWindows]: ...


@checked
def random_windows(
    tokens, seq_len: Positive, batch_size: Positive, *, separator: Natural | None = None, seed: Natural = 0
):
    """Make the function that draws a batch of windows from a text: the same batch for the same step, always.

    The `tokens` are the ids of the text, a list or an array, at least `seq_len + 1` of them; windows start anywhere in
    it. The function, from a step, 0 or more, remembers nothing, so training can resume anywhere. A text larger than
    memory may lie on the disk, as `open_tokens` or `np.memmap` gives it: only the windows drawn are read, and only
    their ids are checked.

    At the border of two documents a window goes on into the next, whose tokens then attend to those of the one
    before. With a `separator`, the id of the token between documents, it ends there, and is padded: the function
    returns `PaddedWindows`.

    Example:
        The targets are the inputs, one token later.

        >>> batch_at = pf.data.random_windows(range(100), seq_len=4, batch_size=2)
        >>> inputs, targets = batch_at(0)
        >>> print(targets - inputs)
        [[1 1 1 1]
         [1 1 1 1]]
    """
    text = _long_enough(tokens, seq_len)
    places = np.arange(seq_len + 1)

    @checked
    def batch_at(step: Natural) -> Windows | PaddedWindows:
        starts = np.random.default_rng([seed, step]).integers(len(text) - seq_len, size=(batch_size, 1))
        windows = _read(text[starts + places])
        if separator is not None:
            return _padded([row[: _end(row, separator)] for row in windows], seq_len)
        return Windows(jnp.asarray(windows[:, :-1]), jnp.asarray(windows[:, 1:]))

    return batch_at


@checked
def consecutive_windows(tokens, seq_len: Positive, *, separator: Natural | None = None) -> PaddedWindows:
    """Cut a text into windows side by side, so that every token but the first is a target exactly once.

    Arguments as for `random_windows`; `is_token` is `False` where a window is padded with zeros. All windows are in
    memory at once: see `stream_windows` for a text that is larger.

    At the border of two documents a window goes on into the next, and only the last one is padded. With a
    `separator` each document is cut by itself, and the last window of each is padded.

    Example:
        Two documents, between separators: no window goes from one into the next.

        >>> bpe = pf.BytePairEncoder.train("ab cd", vocab_size=258, special=["<end>"])
        >>> ids = bpe.encode("<end>abcd<end>ef<end>", allowed_special=["<end>"])
        >>> windows = pf.data.consecutive_windows(ids, 3, separator=bpe.special["<end>"])
        >>> [bpe.decode(row[here].tolist()) for row, here in zip(windows.targets, windows.is_token, strict=True)]
        ['abcd', '<end>', 'ef<end>']
    """
    return _padded(list(_side_by_side(_long_enough(tokens, seq_len), seq_len, separator)), seq_len)


@checked
def stream_windows(
    tokens, seq_len: Positive, batch_size: Positive, *, separator: Natural | None = None
) -> Iterator[PaddedWindows]:
    """Cut a text as `consecutive_windows` does, and read it batch by batch, so that it may be larger than memory.

    The last batch is filled up with windows that do not count, so that all batches are of one shape. At the border
    of two documents it does as `consecutive_windows`.
    """
    windows = _side_by_side(_long_enough(tokens, seq_len), seq_len, separator)
    batches = iter(lambda: list(islice(windows, batch_size)), [])
    return (_padded(batch + [batch[0][:0]] * (batch_size - len(batch)), seq_len) for batch in batches)


def _end(window: np.ndarray, separator: int | None) -> int:
    """How many tokens of a window are of the document that it begins in, the separator behind it included."""
    if separator is None:
        return len(window)
    ends = np.flatnonzero(window[1:] == separator)
    return int(ends[0]) + 2 if len(ends) else len(window)


def _side_by_side(text: np.ndarray, seq_len: int, separator: int | None) -> Iterator[np.ndarray]:
    """The tokens of one window after the other; the last target of each is the first input of the next."""
    start = 0
    while start < len(text) - 1:
        window = _read(text[start : start + seq_len + 1])
        window = window[: _end(window, separator)]
        yield window
        start += len(window) - 1


def _padded(windows: list[np.ndarray], seq_len: int) -> PaddedWindows:
    """Windows of unequal length, filled up with zeros."""
    ids = np.zeros((len(windows), seq_len + 1), np.int32)
    for row, window in zip(ids, windows, strict=True):
        row[: len(window)] = window
    counts = np.array([len(window) - 1 for window in windows])
    is_token = np.arange(seq_len) < counts[:, None]
    inputs = np.where(is_token, ids[:, :-1], 0)
    return PaddedWindows(*(jnp.asarray(array) for array in (inputs, ids[:, 1:], is_token)))


def _long_enough(tokens, seq_len: int) -> np.ndarray:
    """The text as an array; one on the disk stays there, and its ids are checked when they are read."""
    if isinstance(tokens, np.memmap):
        text: np.ndarray = tokens
        check_axes("tokens", text, "One text, whose axis are its tokens.", seq=None)
        if text.dtype.kind not in "iu":
            raise TypeError(f"tokens are {text.dtype}; expected whole numbers. Give np.memmap the dtype of the file.")
    else:
        text = np.asarray(check_token_ids(tokens, name="tokens"), np.int32)
    if len(text) < seq_len + 1:
        expected = f"at least {seq_len + 1}, a window and the token after it"
        raise ValueError(f"The text has {len(text)} tokens; expected {expected}. Use a longer text or shorter windows.")
    return text


def _read(ids: np.ndarray) -> np.ndarray:
    ids = np.asarray(ids)
    expected = "0 to 2147483647, the whole numbers that int32 holds. Is the dtype that of the file?"
    return refuse(ids, (ids < 0) | (ids >= 2**31), "tokens", expected).astype(np.int32)
