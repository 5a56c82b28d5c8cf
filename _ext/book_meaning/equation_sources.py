"""The labelled equations as they stand in the chapters, with their numbers, and the code that claims them.

The one sheet (`drawings/sheet.py`) is drawn from these. Sphinx counts for itself: a test holds the two together.
"""

import ast
import re
from pathlib import Path
from typing import NamedTuple

from .equation_claims import Place, definitions, implementations
from .order import chapters

EQUATION = re.compile(r"^```\{math\}\n:label: (eq-[\w-]+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


class Equation(NamedTuple):
    """Where an equation stands, its number as the book shows it, and its TeX."""

    page: str
    number: str
    tex: str


def equations(root: Path) -> dict[str, Equation]:
    """Every labelled equation of the chapters, by its label."""
    found = {}
    for page, chapter in chapters(root).items():
        text = (root / f"{page}.md").read_text(encoding="utf-8")
        for count, (label, tex) in enumerate(EQUATION.findall(text), start=1):
            found[label] = Equation(page, f"{chapter}.{count}".removeprefix("."), " ".join(tex.split()))
    return found


def claiming(root: Path, label: str, name: str) -> tuple[Place, ast.AST]:
    """The function or class `name` that says that it implements an equation, and what it is made of."""
    places = [place for place in implementations(root).get(label, []) if place.name.endswith(f".{name}")]
    if not places:
        raise LookupError(f"no {name} says that it implements {label}")
    (place,) = places
    inside = definitions(root, root / place.file, place.name.rpartition(".")[0])
    return place, next(node for node, other in inside if other.line == place.line and isinstance(node, ast.stmt))


def says(node: ast.AST, line: str) -> bool:
    """Whether a line of code stands in what a function or class is made of, however it is broken there."""
    return ast.unparse(ast.parse(line, mode="eval")) in ast.unparse(node)
