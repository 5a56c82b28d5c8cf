"""The `listing` directive: code of the package in so far as it computes, without docstrings and checks.

    ```{listing} attend MultiHeadAttention.__call__
    ```

shows these definitions one below the other, and below them a link to the full source of each. A name may be as short
as is unique, a method's with its class: `attend`, `layers.dropout`. Answers to exercises are no candidates. Lines that
are wider than the column of the page are broken for it.
"""

import ast
import copy
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent, wrap
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .addresses import source_address
from .equation_claims import Place

Definition = ast.FunctionDef | ast.ClassDef
CHECKING_DECORATORS = {"checked", "jaxtyped"}
WIDTH = 88  # letters of code that a page holds on a desktop


class Listing(NamedTuple):
    """What is shown of a definition, and where all of it stands."""

    code: str
    place: Place

    @property
    def owner(self) -> str:
        """The class of a method; empty for all else."""
        owner = self.place.name.split(".")[-2]
        return "" if owner == Path(self.place.file).stem else owner

    @property
    def title(self) -> str:
        """The source's file within the package, for a method with its class: `Decoder in models/decoder.py`."""
        file = Path(*Path(self.place.file).parts[2:]).as_posix()
        return f"{self.owner} in {file}" if self.owner else file


class ListingDirective(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        try:
            listings = [find(root, name) for name in self.arguments[0].split()]
        except LookupError as error:
            raise self.error(f"listing: {error.args[0]}") from error
        code = fitted("\n\n\n".join(listing.code for listing in listings))
        block = nodes.literal_block(code, code, language="python")
        links = nodes.paragraph(classes=["listing-source"])
        for listing in listings:
            self.env.note_dependency(listing.place.file)
            title = f"{listing.title}, line {listing.place.line}"
            address = source_address(self.config, listing.place.file, listing.place.line)
            links += [nodes.Text("; " if links.children else ""), nodes.reference("", title, refuri=address)]
        self.set_source_info(block)
        return [block, links]


def fitted(code: str) -> str:
    """Break lines that are too wide: ruff breaks those of code, and a comment goes on in a line of its own."""
    if max(map(len, code.splitlines())) <= WIDTH:
        return code
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={WIDTH}", "-"]
    code = subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout
    lines = []
    for line in code.splitlines():
        text = line.lstrip()
        sign = " " * (len(line) - len(text)) + "# "
        is_wide = len(line) > WIDTH and text.startswith("# ")
        lines += wrap(text[2:], WIDTH, initial_indent=sign, subsequent_indent=sign) if is_wide else [line]
    return "\n".join(lines)


# --- Finding a definition ---------------------------------------------------------------------------------------


def find(root: Path, name: str) -> Listing:
    """Look up the definition whose full name ends with `name`; raise `LookupError` if there is none, or several."""
    *path, last = name.split(".")
    alike = list(definitions(root, last))
    # Without a class in front, a name means no method.
    found = [at for at in alike if f".{at.place.name}".endswith(f".{name}") and (path or not at.owner)]
    if len(found) == 1:
        return found[0]
    candidates = ", ".join(at.place.name for at in found or alike)
    if found:
        raise LookupError(f"{name} may be any of {candidates}: write more of the name")
    raise LookupError(f"the package defines no {name}; " + (f"it has {candidates}" if alike else f"nor any {last}"))


def definitions(root: Path, name: str) -> Iterator[Listing]:
    """Every function, class and method of the package that is called `name`."""
    for file in sorted((root / "src").rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if "exercises" in file.parts or not (f"def {name}" in source or f"class {name}" in source):
            continue
        module = ".".join(file.relative_to(root / "src").with_suffix("").parts)
        for full_name, node in named(parsed(source), module):
            if node.name == name:
                place = Place(full_name, file.relative_to(root).as_posix(), node.lineno)
                yield Listing(computing_part(source, node), place)


@cache
def parsed(source: str) -> ast.Module:
    """The tree of a module, which many listings are looked for in."""
    return ast.parse(source)


def named(scope: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, Definition]]:
    """Every definition of a module or class with its full name, but nothing from inside a function."""
    for node in scope.body:
        if isinstance(node, Definition):
            yield f"{prefix}.{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from named(node, f"{prefix}.{node.name}")


# --- What is shown of it ----------------------------------------------------------------------------------------


def computing_part(source: str, node: Definition) -> str:
    """Return the text of a definition without what `left_out` names, and without the comments right above that."""
    lines = source.splitlines()
    instead: dict[int, str | None] = dict(short_signatures(node, lines))
    for part, stub in left_out(node):
        start = first_line(part)
        while lines[start - 2].startswith(f"{' ' * part.col_offset}#"):
            start -= 1
        instead |= dict.fromkeys(range(start, last_line(part) + 1)) | {start: stub}
    shown: list[str] = []
    gap = False
    for number in range(first_line(node), last_line(node) + 1):
        line = instead.get(number, lines[number - 1])
        # A gap leaves no blank line at the beginning of a block, and never two.
        before = shown[-1].split("#")[0].rstrip() if shown else ""
        if line is None or (gap and not line and (not before or before.endswith(":"))):
            gap = True
        else:
            shown.append(line)
            gap = False
    return dedent("\n".join(shown)).rstrip()


def short_signatures(node: Definition, lines: list[str]) -> Iterator[tuple[int, str | None]]:
    """For each signature over several lines, what stands in place of its lines: the names alone, and their defaults.

    The shapes are in the chapter's table, and behind the link.
    """
    for function in (part for part in ast.walk(node) if isinstance(part, ast.FunctionDef)):
        if not lines[function.lineno - 1].rstrip().endswith(":"):
            arguments = copy.deepcopy(function.args)
            for argument in ast.walk(arguments):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
            yield function.lineno, f"{' ' * function.col_offset}def {function.name}({ast.unparse(arguments)}):"
            yield from ((number, None) for number in range(function.lineno + 1, first_line(function.body[0])))


def left_out(node: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, str | None]]:
    """Each docstring, and each decorator, statement and method that only checks; a body left empty becomes `...`."""
    for decorator in getattr(node, "decorator_list", []):
        if ast.unparse(decorator).split(".")[-1] in CHECKING_DECORATORS:
            yield decorator, None
    for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list):
            unwanted = [part for part in block if is_docstring(part) or only_checks(part)]
            emptied = unwanted == block
            if not emptied or isinstance(node, Definition):
                yield from ((part, None) for part in unwanted[emptied:])
                if emptied:
                    yield unwanted[0], " " * unwanted[0].col_offset + "..."
            for part in block:
                if part not in unwanted:
                    yield from left_out(part)


def first_line(node: ast.stmt | ast.expr) -> int:
    """The line at which a node begins, its decorators included."""
    return min(part.lineno for part in [node, *getattr(node, "decorator_list", [])])


def last_line(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def only_checks(node: ast.AST) -> bool:
    """Whether this is a call of `check_…`, an `if …: raise …`, a block of such, or what Equinox calls for checking."""
    match node:
        case ast.Expr(ast.Call(func=function)):
            return ast.unparse(function).split(".")[-1].lstrip("_").startswith("check_")
        case ast.If(body=body, orelse=otherwise):
            return all(
                isinstance(block[-1], ast.Raise) or all(map(only_checks, block)) for block in (body, otherwise) if block
            )
        case ast.For() | ast.With():
            return all(map(only_checks, node.body))
        case ast.FunctionDef():
            return node.name == "__check_init__"
    return False


def connect(app: Sphinx) -> None:
    app.add_directive("listing", ListingDirective)
