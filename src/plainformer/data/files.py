"""Reading, writing and fetching files so that a bad one is named, and a good one never half overwritten."""

import json
import os
from collections import Counter
from pathlib import Path

Name = str | os.PathLike


def read_text(path: Name) -> str:
    """Read a UTF-8 file whole, line ends as they are; a byte-order mark at the start is dropped.

    **Raises** `FileNotFoundError`, `IsADirectoryError`, or `ValueError` that says which byte is not UTF-8.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}. Looked in {path.parent.resolve()}.")
    try:
        return path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8: byte {error.start} (0x{error.object[error.start]:02x}) fits nowhere. "
            "Is it another encoding, such as Latin-1 or UTF-16, or no text at all?"
        ) from error


def read_json(path: Name) -> dict:
    """Read a JSON file that holds one object, each key once; `ValueError` says what is wrong with any other."""
    text = read_text(path)
    try:
        content = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. Is it cut short?") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}; expected a JSON object.")
    return content


def write_text(path: Name, text: str) -> None:
    """Write a UTF-8 file, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Name, content: bytes) -> None:
    """Write a file under another name and then rename it, so that a crash never leaves half a file.

    A symbolic link stays one: the file that it points to is written.

    **Raises** `FileNotFoundError` if the folder does not exist, `OSError` that names `path` if it cannot be written.
    """
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to put {target.name} in; make it first.")
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            partial.write_bytes(content)
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error


def download(url: str, sha256: str, name: str, *, what: str, own: str, offline: str) -> str:
    """Fetch a file once, keep it in the cache folder of the operating system, and check it whenever it is used.

    **Arguments** its address, its checksum, its name in the cache; and for the messages: what it is, what to use with a
    copy of one's own, and what to use without a network.

    **Returns** its path there. **Raises** `OSError` if it cannot be fetched, `ValueError` if what came is another file.
    """
    import pooch

    try:
        return pooch.retrieve(url, f"sha256:{sha256}", name, pooch.os_cache("plainformer"))
    except ValueError as error:  # pooch compares the sums, and keeps no file that differs
        raise ValueError(f"What {url} gave is not {what}: {error}. Try again, or use {own}.") from error
    except OSError as error:  # the errors of requests are among them
        raise OSError(f"Cannot download {url}: {error}. Without a network, use {offline}.") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {key!r} stands there twice")
    return content
