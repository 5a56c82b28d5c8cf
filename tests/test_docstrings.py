"""What `help` says: of the package, all that there is; and what a version and a package without docstrings do."""

import ast
import inspect
import operator
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from book import ROOT
from sphinx.ext.napoleon import Config, GoogleDocstring
from wrong_calls import public_callables

import plainformer as pf
from plainformer import contents


def defined_in(file: str) -> set[str]:
    """The public names that a file of the package defines, or imports to be found there."""
    found = set()
    body = ast.parse((ROOT / "src/plainformer" / file).read_text("utf-8")).body
    for node in [each for part in body for each in (part.body if isinstance(part, ast.If) else [part])]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname for alias in node.names if alias.asname}
    return {name for name in found if not name.startswith("_")}


def fields_of(thing) -> set[str]:
    """What may be given when this is called, and what a class holds."""
    held = [vars(base).get("__annotations__", {}) for base in getattr(thing, "__mro__", ())]
    called = thing.__init__ if isinstance(thing, type) else thing
    return set(inspect.signature(called).parameters).union(*held)


def test_sections_are_those_that_tools_read():
    """Sphinx's own reader of Google's form finds what `Args` describes, and all of it is what is called."""
    wrong, described = {}, 0
    for name, thing in public_callables().items():
        text = inspect.getdoc(thing) or ""
        named = set(re.findall(r":param (?:\\\*)*(\w+):", str(GoogleDocstring(text, Config(napoleon_use_param=True)))))
        described += len(named)
        if named - fields_of(thing) or re.search(r"\*\*[A-Z]", text):
            wrong[name] = named - fields_of(thing)
    assert not wrong
    assert described > 200


def test_help_names_all_there_is_with_its_first_line():
    listed = dict(re.findall(r"^    pf\.(\S+): (.+)$", pf.__doc__, re.M))
    top = defined_in("__init__.py") - {"data", "plots", "training"}
    folder = Path(pf.__file__).parent
    rooms = {room: f"{room}/__init__.py" if (folder / room).is_dir() else f"{room}.py" for room in contents.ROOMS}
    inside = {f"{room}.{name}" for room, file in rooms.items() for name in defined_in(file) - top}
    inside = {name for name in inside if not name.rpartition(".")[2].isupper()}  # a dictionary has no docstring
    assert listed.keys() == top | inside
    for name, line in listed.items():
        assert inspect.getdoc(operator.attrgetter(name)(pf)).splitlines()[0] == line


def test_version_is_that_of_the_installed_package():
    assert pf.__version__ == version("plainformer")
    with pytest.raises(AttributeError, match="no attribute '__author__'"):
        _ = pf.__author__


def test_package_is_imported_without_docstrings():
    code = "import plainformer as pf; print(pf.causal_mask(1))"
    shown = subprocess.run([sys.executable, "-OO", "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout == "[[ True]]\n"
