"""English about programs: the docstrings of the packages that are installed beside this one."""

import ast
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from plainformer.checks import checked
from plainformer.data.text import split_by_name

DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
PACKAGES = ("jax", "matplotlib", "numpy", "scipy", "sklearn")


@checked
def docstring_splits(packages: Iterable[str] = PACKAGES) -> tuple[str, str]:
    """Return the docstrings of installed packages in two parts: to train on, and, about a tenth, to validate on.

    The five packages that come with `plainformer` have some 11 MB of them. Their files are read, nothing is imported,
    and tests are left out. Whole files are held out, chosen by a checksum of their names; of paragraphs that occur more
    than once, only one copy is kept, in the held-out part if it is one of them. Other versions of these packages have
    other docstrings, so no number computed from them is the same everywhere to the last digit.

    Args:
        packages: names as in `import`; a single one may stand alone.

    Raises:
        ModuleNotFoundError: if a package is not installed.
        ValueError: if the packages have so few files with docstrings that one part would be empty.
    """
    names = (packages,) if isinstance(packages, str) else tuple(packages)
    return split_by_name(_docstrings(names), "packages with more files that have docstrings")


@cache
def _docstrings(packages: tuple[str, ...]) -> dict[str, str]:
    """By the names of all files of these packages, their docstrings."""
    found = {}
    for package in packages:
        folder = _folder(package)
        for path in sorted(folder.rglob("*.py")):
            if "tests" not in path.parts and (texts := list(_of_file(path))):
                found[f"{package}/{path.relative_to(folder).as_posix()}"] = "\n\n".join(texts)
    return found


def _folder(package: str) -> Path:
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        hint = "Install it with pip, or leave it out."
        raise ModuleNotFoundError(f"There is no installed package {package!r} that is a folder of files. {hint}")
    return Path(spec.submodule_search_locations[0])


def _of_file(path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as strings with a backslash that Python no longer likes
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:  # the file is for another Python
            return
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield text
