"""Windows: equally long pieces of one long text, each with the tokens that follow its own."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from plainformer.checks import Natural, Positive, check_axes, checked, refuse
from plainformer.data.lists import check_token_ids


class Windows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`."""

    inputs: Int[Array, "windows seq"]
    targets: Int[Array, "windows seq"]


class PaddedWindows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`; both count where `is_token` is `True`."""

    inputs: Int[Array, "windows seq"]
    targets: Int[Array, "windows seq"]
    is_token: Bool[Array, "windows seq"]


@checked
def random_windows(tokens, seq_len: Positive, batch_size: Positive, *, seed: Natural = 0) -> Callable[[int], Windows]:
    """Make the function that draws a batch of windows from a text: the same batch for the same step, always.

    The `tokens` are the ids of the text, a list or an array, at least `seq_len + 1` of them; windows start anywhere in
    it. The function, from a step, 0 or more, remembers nothing, so training can resume anywhere. A text larger than
    memory may lie on the disk, as `open_tokens` or `np.memmap` gives it: only the windows drawn are read, and only
    their ids are checked.

    **Example**: the targets are the inputs, one token later.

    >>> batch_at = pf.data.random_windows(range(100), seq_len=4, batch_size=2)
    >>> inputs, targets = batch_at(0)
    >>> print(targets - inputs)
    [[1 1 1 1]
     [1 1 1 1]]
    """
    text = _long_enough(tokens, seq_len)
    places = np.arange(seq_len + 1)

    @checked
    def batch_at(step: Natural) -> Windows:
        starts = np.random.default_rng([seed, step]).integers(len(text) - seq_len, size=(batch_size, 1))
        windows = _read(text[starts + places])
        return Windows(jnp.asarray(windows[:, :-1]), jnp.asarray(windows[:, 1:]))

    return batch_at


@checked
def consecutive_windows(tokens, seq_len: Positive) -> PaddedWindows:
    """Cut a text into windows side by side, so that every token but the first is a target exactly once.

    Arguments as for `random_windows`; `is_token` is `False` where the last window is padded with zeros. All windows
    are in memory at once: see `stream_windows` for a text that is larger.
    """
    text = _long_enough(tokens, seq_len)
    return _side_by_side(text, seq_len, -(-(len(text) - 1) // seq_len))


@checked
def stream_windows(tokens, seq_len: Positive, batch_size: Positive) -> Iterator[PaddedWindows]:
    """Cut a text as `consecutive_windows` does, and read it batch by batch, so that it may be larger than memory.

    The last batch is filled up with windows that do not count, so that all batches are of one shape.
    """
    text = _long_enough(tokens, seq_len)
    size = batch_size * seq_len
    return (
        _side_by_side(text[start : start + size + 1], seq_len, batch_size) for start in range(0, len(text) - 1, size)
    )


def _side_by_side(text: np.ndarray, seq_len: int, num_windows: int) -> PaddedWindows:
    """The first so many windows of a text, padded where it ends before they do."""
    size = num_windows * seq_len
    padded = np.pad(_read(text), (0, size + 1 - len(text)))
    arrays = padded[:-1], padded[1:], np.arange(size) < len(text) - 1
    return PaddedWindows(*(jnp.asarray(array.reshape(num_windows, seq_len)) for array in arrays))


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
    return refuse(ids, (ids < 0) | (ids >= 2**31), "ids", expected).astype(np.int32)
