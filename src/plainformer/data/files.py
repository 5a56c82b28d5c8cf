"""Reading, writing and fetching files so that a bad one is named, and a good one never half overwritten."""

import inspect
import json
import os
import stat
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from plainformer.checks import checked

Name = str | os.PathLike
Made = TypeVar("Made")
PARTIAL = ".plainformer-"  # how the name of a file begins that is not yet written whole


@checked
def as_path(name: Name) -> Path:
    """Return the path of a file or folder, with the user's home for a `~` at its beginning."""
    return Path(os.path.expanduser(name))  # where there is no such user, `~` is a letter


@checked
def read_text(path: Name) -> str:
    """Read a UTF-8 file whole, line ends as they are; a byte-order mark at the start is dropped."""
    path = as_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}. Looked in {path.parent.resolve()}.")
    try:
        return path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        byte, hint = f"byte {error.start} (0x{error.object[error.start]:02x})", "such as Latin-1 or UTF-16"
        raise ValueError(f"{path} is not UTF-8: {byte} is none. Is it another encoding, {hint}, or no text?") from error


def write_text(path: Name, text: str) -> None:
    """Write a UTF-8 file, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def append_text(path: Name, text: str) -> None:
    """Add text at the end of a UTF-8 file, and return when it would outlast a power cut."""
    with open(path, "ab") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


def write_bytes(path: Name, content: bytes) -> None:
    """Write a file as `replacing` does."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
@checked
def replacing(path: Name) -> Iterator[BinaryIO]:
    """Give a file to write to under another name; once it is written whole, flush it and give it the name `path`.

    So a crash or power cut leaves the old file or the new one. A file that is replaced hands on its mode. A symbolic
    link stays one: the file that it points to is written. Of several hard links, only this one leads to the new file.

    Raises:
        OSError: naming `path`: `FileNotFoundError` for a missing folder, others if it cannot be written.
    """
    target = Path(os.path.realpath(as_path(path)))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to put {target.name} in; make it first.")
    if os.path.lexists(target) and not target.is_file():
        kind = IsADirectoryError if target.is_dir() else OSError
        raise kind(f"cannot write {path}: it exists and is not a regular file. Choose another name.")
    partial = target.with_name(f"{PARTIAL}{uuid.uuid4().hex}.part")
    try:
        _remove_abandoned(target.parent)
        with open(partial, "xb") as file:
            if target.exists():
                os.chmod(partial, stat.S_IMODE(target.stat().st_mode))  # before there is anything to read in it
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except OSError as error:
        if error.filename not in (None, str(partial)):
            raise  # of another file, which the content is read from
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(target.parent)


def read_json(path: Name) -> dict:
    """Read a JSON file that holds one object, each key once; `ValueError` says what is wrong with any other."""
    return parse_json(read_text(path), path)


def parse_json(text: str, name: Name) -> dict:
    """Parse JSON that holds one object, each key once; messages begin with the `name` of where it is from."""
    try:
        content = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        hint = " Is it cut short?" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"{name} is not valid JSON: {error}.{hint}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{name} holds a {type(content).__name__}; expected a JSON object.")
    return content


def object_from_json(cls: type[Made], content: dict, name: Name, hint: str = "") -> Made:
    """Make a `cls` from a JSON object of its arguments; `ValueError`, beginning with `name`, if it cannot be made."""
    keys = inspect.signature(cls).parameters.keys()
    if content.keys() != keys:
        expected = f"{', '.join(keys)}, as a saved {cls.__name__} has"
        raise ValueError(f"{name} has the keys {spell_keys(content)}; expected {expected}. {hint}".rstrip())
    try:
        return cls(**content)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def spell_keys(content: dict) -> str:
    """The first five keys, for a message."""
    return f"{sorted(content)[:5]}" + " and more" * (len(content) > 5)


def download(url: str, sha256: str, name: str, hint: str = "") -> str:
    """Fetch a file once, and return its path, which ends in `name`, in the operating system's cache folder.

    Raises:
        OSError: if it cannot be fetched.
        ValueError: if its SHA-256, checked at each use, is another one.
    """
    import pooch

    try:
        return pooch.retrieve(url, f"sha256:{sha256}", name, pooch.os_cache("plainformer"))
    except ValueError as error:  # pooch keeps no file whose checksum differs
        raise ValueError(f"{url} is not the file expected: {error}. {hint}".rstrip()) from error
    except OSError as error:  # the errors of requests are among them
        raise OSError(f"Cannot download {url}: {error}. {hint}".rstrip()) from error


def _remove_abandoned(folder: Path) -> None:
    """Remove what is left of writing that was killed more than an hour ago."""
    for partial in folder.glob(f"{PARTIAL}*.part"):
        with suppress(OSError):  # another process may have been quicker
            if time.time() - partial.stat().st_mtime > 3600:
                partial.unlink()


def sync_folder(folder: Path) -> None:
    """Let a renaming in it outlast a power cut, where the system can do that: not all can open or flush a folder."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {key!r} appears twice")
    return content
