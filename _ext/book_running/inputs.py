"""What a chapter used while it ran: modules of the package, stored models and records, other files of the book.

The kernel that runs a chapter notes them (`watch.py`), the builder keeps them with a hash of each, and the chapter runs
again when one of the hashes has changed. A module counts as code: comments and docstrings change nothing.
"""

import ast
import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

PACKAGE = "plainformer"
NOT_USED = {"src/plainformer/data/stored.json"}  # checksums of all stored files; each file counts by itself
FOLDERS_OF_OTHERS = (".venv", "_build", "build")


def used(notes: Path, root: Path) -> dict[str, str]:
    """Return the files below `root` that are named in a kernel's notes, each with the hash of its content."""
    lines = notes.read_text("utf-8").splitlines()
    found: set[Path] = set()
    written: set[Path] = set()
    for line in lines:
        kind, _, name = line.partition(" ")
        if kind == "module":
            found.add(module_file(root, name))
        elif kind == "file":
            found.add(Path(name))
        elif kind == "written":  # by the chapter itself
            written.add(Path(name))
        else:  # nobody notes what another process uses, so the chapter depends on the whole package
            found.update((root / "src" / PACKAGE).rglob("*.py"))
    return hashes(relative(found - written, root), root)


def relative(files: Iterable[Path], root: Path) -> list[str]:
    """Return the names, from `root` on, of those files that belong to the book."""
    inside = [file.relative_to(root) for file in files if file.is_file() and file.is_relative_to(root)]
    own = {name.as_posix() for name in inside if name.parts[0] not in FOLDERS_OF_OTHERS and name.suffix != ".pyc"}
    return sorted(own - NOT_USED)


def module_file(root: Path, name: str) -> Path:
    """Where the source of a module of the package stands."""
    place = root.joinpath("src", *name.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def hashes(names: Iterable[str], root: Path) -> dict[str, str]:
    """Return a hash of the content of each file; of a file that is gone, an empty one."""
    return {name: content_hash(root / name) for name in names}


def content_hash(file: Path) -> str:
    """Hash a file; a module of Python without its comments and docstrings."""
    if not file.is_file():
        return ""
    changed = file.stat()
    return _content_hash(file, changed.st_mtime_ns, changed.st_size)


@functools.cache
def _content_hash(file: Path, changed: int, size: int) -> str:
    content = file.read_bytes()
    if file.suffix == ".py":
        content = ast.dump(without_docstrings(ast.parse(content))).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def without_docstrings(tree: ast.Module) -> ast.Module:
    """Return the tree of a module from which every docstring has been taken."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
    return tree


def changed(inputs: dict[str, str] | None, root: Path) -> list[str]:
    """Name what a chapter used that is no longer what it was."""
    if inputs is None:
        return ["nobody noted what it uses"]
    return [name for name, before in inputs.items() if content_hash(root / name) != before]
