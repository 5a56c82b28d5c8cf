"""Text to learn from: what ships with Python, Tiny Shakespeare, and files of your own."""

import os
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Annotated

from plainformer.checks import Number, Positive, checked
from plainformer.data.files import as_path, download, read_text

Fraction = Annotated[float, Number(lambda share: 0 < share < 1, "more than 0 and less than 1, such as 0.9")]
TINY_SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
TINY_SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"


def python_reference() -> str:
    """Return the text of the Python reference that ships inside every CPython: about 460 kB of English.

    It is what `help("for")` shows, topic after topic in the order of their names, nothing removed but white space
    around each topic. It differs a little between Python versions, so no number computed from it is the same
    everywhere to the last digit.

    Raises:
        FileNotFoundError: if this Python was built without `pydoc_data`.
    """
    topics = _topics()
    return "\n\n".join(topics[name] for name in sorted(topics)) + "\n"


def python_reference_splits() -> tuple[str, str]:
    """Return the Python reference in two parts: to train on, and, about a tenth, to validate on.

    Whole topics are held out, chosen by a checksum of their names, so that the choice is the same for every Python.
    Topics repeat each other at length; of paragraphs that occur more than once, only one copy is kept, in the held-out
    part if it is one of them. So no paragraph is in both.
    """
    return split_by_name(_topics(), "another Python, whose reference has more topics")


def split_by_name(texts: dict[str, str], wanted: str) -> tuple[str, str]:
    """Hold about a tenth of some named texts out, by their names; keep each paragraph once, held out if it can be."""
    held_out = [name for name in sorted(texts) if zlib.crc32(name.encode()) % 10 == 0]
    validation = _paragraphs(texts, held_out, seen={""})
    training = _paragraphs(texts, [name for name in sorted(texts) if name not in held_out], seen={"", *validation})
    if not (training and validation):
        raise ValueError(f"{len(texts)} texts leave nothing to train on or to validate on; expected {wanted}.")
    return "\n\n".join(training.values()) + "\n", "\n\n".join(validation.values()) + "\n"


def tiny_shakespeare() -> tuple[str, str]:
    """Download Tiny Shakespeare once, 1.1 MB, and return the first 90 per cent, to train on, and the rest.

    They have 1,003,854 and 111,540 characters. The file is kept in the operating system's cache folder, and checked by
    its SHA-256 whenever it is read.

    Raises:
        OSError: if it cannot be downloaded.
        ValueError: if another came.
    """
    hint = "Try again, or use load_text() with a copy of your own; python_reference() needs no network."
    return split_text(load_text(download(TINY_SHAKESPEARE, TINY_SHAKESPEARE_SHA256, "tiny_shakespeare.txt", hint)))


@checked
def split_text(text: str, fraction: Fraction = 0.9) -> tuple[str, str]:
    """Cut a text in two: a fraction of its characters, rounded down, to train on, and the rest to validate on."""
    end = int(fraction * len(text))
    if not 0 < end < len(text):
        raise ValueError(f"A text of {len(text)} characters has no {fraction:.0%} of it that leaves two parts.")
    return text[:end], text[end:]


def load_text(path: str | os.PathLike) -> str:
    """Read a UTF-8 file of your own; line ends stay as they are, a byte-order mark at the start is dropped.

    Raises:
        FileNotFoundError: if there is no such file.
        IsADirectoryError: if it is a folder.
        ValueError: if the file is empty or not UTF-8.
    """
    text = read_text(path)
    if not text.strip():
        raise ValueError(f"{path} is empty, or holds white space only; expected some text.")
    return text


@checked
def stream_text(path: str | os.PathLike, piece_size: Positive = 2**20) -> Iterator[str]:
    """Read a UTF-8 file in pieces, for one larger than memory; joined, they are what `load_text` returns.

    A piece has `piece_size` characters and what is left of the line, or that many once more if the line is longer.
    A tokenizer may encode the ends of two pieces otherwise than it would the whole text.

    Raises:
        FileNotFoundError: if there is no such file.
        IsADirectoryError: if it is a folder.
        ValueError: when it comes to it, if the file is not UTF-8.
    """
    path = as_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}. Looked in {path.parent.resolve()}.")
    return _stream(path, piece_size)


def _stream(path: str | os.PathLike, piece_size: int) -> Iterator[str]:
    done = 0
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            while piece := file.read(piece_size) + file.readline(piece_size):
                yield piece
                done += len(piece)
        except UnicodeDecodeError as error:
            reason = f"{path} is not UTF-8, somewhere after character {done}: {error.reason}"
            raise ValueError(f"{reason}. Is it another encoding, such as Latin-1 or UTF-16, or no text?") from error


@cache
def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        hint = "Use another one, or a text of your own: load_text('my.txt')."
        raise FileNotFoundError(f"This Python came without pydoc_data, which holds its reference. {hint}") from error
    return {name: text.strip() for name, text in topics.items()}


def _paragraphs(topics: dict[str, str], names: list[str], seen: set[str]) -> dict[str, str]:
    """The paragraphs of these topics, by themselves without white space around, but for those seen there or here."""
    found: dict[str, str] = {}
    for paragraph in (paragraph for name in names for paragraph in topics[name].split("\n\n")):
        if paragraph.strip() not in seen:
            found.setdefault(paragraph.strip(), paragraph)
    return found
