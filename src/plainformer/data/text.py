"""Text to learn from: what ships with Python, and the reader's own files."""

import os
import zlib
from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from plainformer.checks import check_positive, check_token_ids
from plainformer.data.files import download, read_text

TINY_SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
TINY_SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"


def python_reference() -> str:
    r"""Give the text of the Python reference that ships inside every CPython: about 460 kB of English.

    It is what `help("for")` shows, topic after topic in the order of their names, nothing removed but white space
    around each topic. It differs a little between Python versions, so no number computed from it is the same
    everywhere to the last digit.

    **Returns** the text.

    **Raises** `FileNotFoundError` if this Python was built without `pydoc_data`.
    """
    topics = _topics()
    return "\n\n".join(topics[name] for name in sorted(topics)) + "\n"


def python_reference_splits() -> tuple[str, str]:
    r"""Give the Python reference in two parts: to train on, and, about a tenth, to validate on.

    Whole topics are held out, chosen by a checksum of their names, so that the choice is the same for every Python.
    Topics repeat each other at length; of paragraphs that occur more than once, only one copy is kept, in the held-out
    part if it is one of them. So no paragraph is in both.

    **Returns** training and validation text. **Raises** as `python_reference`.
    """
    topics = _topics()
    held_out = [name for name in sorted(topics) if zlib.crc32(name.encode()) % 10 == 0]
    validation = _paragraphs(topics, held_out, seen={""})
    training = _paragraphs(topics, [name for name in sorted(topics) if name not in held_out], seen={"", *validation})
    return "\n\n".join(training.values()) + "\n", "\n\n".join(validation.values()) + "\n"


@cache
def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise FileNotFoundError(
            "This Python came without pydoc_data, which holds the text of its reference (some slim builds leave it "
            "out). Use another Python, or a text of your own: load_text('my.txt')."
        ) from error
    return {name: text.strip() for name, text in topics.items()}


def _paragraphs(topics: dict[str, str], names: list[str], seen: set[str]) -> dict[str, str]:
    """The paragraphs of these topics, in order, but for those already seen, there or here, however indented.

    Each stands under what it is without white space around it.
    """
    found: dict[str, str] = {}
    for paragraph in (paragraph for name in names for paragraph in topics[name].split("\n\n")):
        if paragraph.strip() not in seen:
            found.setdefault(paragraph.strip(), paragraph)
    return found


def tiny_shakespeare() -> tuple[str, str]:
    r"""Download Tiny Shakespeare once, 1.1 MB, and give its two parts: the first 90 per cent to train on, and the rest.

    The file is kept in the cache folder of the operating system, and checked by its SHA-256 whenever it is read.

    **Returns** training and validation text, 1,003,854 and 111,540 characters. **Raises** `OSError` if it cannot be
    downloaded; `ValueError` if what came is another text.
    """
    path = download(
        TINY_SHAKESPEARE,
        TINY_SHAKESPEARE_SHA256,
        "tiny_shakespeare.txt",
        what="Tiny Shakespeare",
        own="load_text() with a copy of your own",
        offline="python_reference(), or load_text() with a copy of your own",
    )
    return split_text(load_text(path))


def split_text(text: str, fraction: float = 0.9) -> tuple[str, str]:
    r"""Cut a text in two, to train on its first part and to validate on the rest.

    **Arguments** the text, and which fraction of its characters is to train on, above 0 and below 1, rounded down.

    **Returns** both parts. **Raises** `ValueError` if `fraction` is out of range or a part would be empty.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction is {fraction}; expected more than 0 and less than 1, such as 0.9.")
    end = int(fraction * len(text))
    if not 0 < end < len(text):
        raise ValueError(f"A text of {len(text)} characters has no {fraction:.0%} of it that leaves two parts.")
    return text[:end], text[end:]


def load_text(path: str | os.PathLike) -> str:
    r"""Read a text file of your own.

    **Arguments**

    - `path`: a UTF-8 file. Line ends stay as they are; a byte-order mark at the start is dropped.

    **Returns** the text.

    **Raises** `FileNotFoundError`, `IsADirectoryError`, or `ValueError` if the file is empty or not UTF-8, naming the
    byte where it stops being so.
    """
    text = read_text(path)
    if not text.strip():
        raise ValueError(f"{path} is empty, or holds white space only; expected some text.")
    return text


def windows_at(tokens, seq_len: int, batch_size: int, *, seed: int = 0) -> Callable[[int], tuple]:
    r"""Make the function that draws a batch of windows from a text: the same batch for the same step, always.

    **Arguments**

    - `tokens`: the ids of the text, a list or an array, at least `seq_len + 1` of them.
    - `seq_len`, `batch_size`: tokens in a window; windows in a batch.
    - `seed`: for another sequence of batches, at least 0.

    **Returns** a function from a step, 0 or more, to inputs and targets, each `(batch_size, seq_len)`, int32: windows
    that start anywhere, and the same windows one token later. It remembers nothing, so training can resume anywhere.

    **Raises** `ValueError` if the text is shorter than a window and its next token.
    """
    text = _text_of_windows(tokens, seq_len)
    check_positive(batch_size=batch_size)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed is {seed!r}; expected a whole number, at least 0.")
    places = np.arange(seq_len)

    def batch_at(step: int) -> tuple[Int[Array, "batch seq"], Int[Array, "batch seq"]]:
        starts = np.random.default_rng([seed, step]).integers(len(text) - seq_len, size=(batch_size, 1))
        return jnp.asarray(text[starts + places]), jnp.asarray(text[starts + places + 1])

    return batch_at


def all_windows(
    tokens, seq_len: int
) -> tuple[Int[Array, "windows seq"], Int[Array, "windows seq"], Bool[Array, "windows seq"]]:
    r"""Cut a text into windows side by side, so that every token but the first is a target exactly once.

    **Arguments** the ids of the text, at least `seq_len + 1` of them, and the number of tokens in a window.

    **Returns** inputs, targets and `is_token`, each `(windows, seq_len)`; `is_token` is `False` where the last window
    is filled up with zeros. **Raises** as `windows_at`.
    """
    text = _text_of_windows(tokens, seq_len)
    num_targets = len(text) - 1
    padded = np.pad(text, (0, -num_targets % seq_len))
    inputs, targets = padded[:-1].reshape(-1, seq_len), padded[1:].reshape(-1, seq_len)
    is_token = np.arange(inputs.size).reshape(inputs.shape) < num_targets
    return jnp.asarray(inputs), jnp.asarray(targets), jnp.asarray(is_token)


def _text_of_windows(tokens, seq_len: int) -> np.ndarray:
    check_positive(seq_len=seq_len)
    text = np.asarray(check_token_ids(tokens), np.int32)
    if len(text) < seq_len + 1:
        raise ValueError(
            f"The text has {len(text)} tokens; expected at least {seq_len + 1}, a window and the token after it. "
            "Use a longer text or a shorter window."
        )
    return text
