"""Which code and which tests belong to which equation.

A function or class claims an equation by saying in its docstring "Implements `eq-…`", a test by the marker
`pytest.mark.equation("eq-…")`. The index of the equations and the book's tests both read the claims from here.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LABEL = re.compile(r"\beq-[a-z0-9]+(?:-[a-z0-9]+)*")
MARKER = "pytest.mark.equation"


class Place(NamedTuple):
    """Where something is defined: its full name, its file seen from the root, and the line."""

    name: str
    file: str
    line: int


Claims = dict[str, list[Place]]


def is_definition(label: str) -> bool:
    """Whether an equation only says what a symbol means, so that there is nothing to compute."""
    return label.endswith("-definition")


def missing(label: str, implemented: Claims, tested: Claims) -> list[str]:
    """Return what an equation lacks, in words."""
    if is_definition(label):
        return []
    expected = {"no docstring says that it implements": implemented, f"no test is marked {MARKER} with": tested}
    return [f"{complaint} {label}" for complaint, claims in expected.items() if label not in claims]


def definitions(root: Path, file: Path, module: str) -> Iterator[tuple[ast.AST, Place]]:
    """Walk through a file: the module itself, then every function and class, with its place."""
    tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
    path = file.relative_to(root).as_posix()

    def walk(node: ast.AST, name: str) -> Iterator[tuple[ast.AST, Place]]:
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{name}.{child.name}".lstrip(".")
                yield child, Place(inside, path, child.lineno)
            yield from walk(child, inside)

    yield tree, Place(module, path, 1)
    yield from walk(tree, module)


def docstrings(root: Path) -> Iterator[tuple[Place, str]]:
    """Every docstring of the package, with the place that it describes."""
    for file in sorted((root / "src").rglob("*.py")):
        parts = file.relative_to(root / "src").with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        for node, place in definitions(root, file, module):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield place, text


def implementations(root: Path) -> Claims:
    """For each label, what claims to implement it: named in the paragraph of a docstring that says "Implements"."""
    claims: Claims = defaultdict(list)
    for place, text in docstrings(root):
        paragraphs = [paragraph for paragraph in text.split("\n\n") if "Implements" in paragraph]
        for label in sorted(set(LABEL.findall("\n\n".join(paragraphs)))):
            claims[label].append(place)
    return dict(claims)


def mentions(root: Path) -> set[str]:
    """Every label that stands in a docstring, whatever is said of it."""
    return {label for _, text in docstrings(root) for label in LABEL.findall(text)}


def proofs(root: Path) -> Claims:
    """For each label, the tests that carry it as a marker: the package's own first, then those of the folders below."""
    claims: Claims = defaultdict(list)
    for file in sorted((root / "tests").rglob("test_*.py"), key=lambda file: (len(file.parts), file)):
        (tree, _), *inside = definitions(root, file, "")
        stray = {node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_marker(node)}
        for node, place in inside:
            # A helper's marker would prove nothing: pytest does not run it.
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for marker in stray.intersection(node.decorator_list):
                    stray.remove(marker)
                    for argument in marker.args:
                        claims[ast.literal_eval(argument)].append(place)
        for marker in stray:
            where = f"{file.relative_to(root).as_posix()}, line {marker.lineno}"
            raise ValueError(f"{where}: {MARKER} is not read there; put it on the test function itself")
    return dict(claims)


def is_marker(call: ast.Call) -> bool:
    """Whether this is `pytest.mark.equation(…)`."""
    return ast.unparse(call.func) == MARKER
