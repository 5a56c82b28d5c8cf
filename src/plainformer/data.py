"""Text to learn from: what ships with Python, and the reader's own files."""

import os
from functools import cache

from plainformer.files import read_text


@cache
def python_reference() -> str:
    r"""Give the text of the Python reference that ships inside every CPython: about 460 kB of English.

    It is what `help("for")` shows, topic after topic in the order of their names, nothing removed but white space
    around each topic. It differs a little between Python versions, so no number computed from it is the same
    everywhere to the last digit.

    **Returns** the text.

    **Raises** `FileNotFoundError` if this Python was built without `pydoc_data`.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise FileNotFoundError(
            "This Python came without pydoc_data, which holds the text of its reference (some slim builds leave it "
            "out). Use another Python, or a text of your own: load_text('my.txt')."
        ) from error
    return "\n\n".join(topics[name].strip() for name in sorted(topics)) + "\n"


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
        raise ValueError(f"{path} is empty, or holds white space only; wanted some text.")
    return text
