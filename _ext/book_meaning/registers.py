"""Lists that make themselves: the chapters with what each builds, the modules of a room of the package, all its names.

    ```{chapter-table}
    ```

    ```{room} attention
    :without: at_least_float32, ready_to_extend
    :without-modules: lists
    ```

    ```{name-index}
    ```

A chapter says in its front matter what a reader will have built by its end (`builds: …`). The reference shows every
module of a room, or those of `:modules:` in their order, but for names and modules that are the package's own. The
index has every name that stands above it on its page, by the alphabet.
"""

import abc
import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .order import chapters, lessons

PACKAGE = "plainformer"


class Written(SphinxDirective):
    """A directive that writes lines of Markdown, and is replaced by what they say."""

    def run(self) -> list[nodes.Node]:
        body = nodes.Element()
        self.state.nested_parse(StringList(list(self.lines()), self.env.docname), self.content_offset, body)
        return body.children

    @abc.abstractmethod
    def lines(self) -> Iterator[str]:
        """Write the lines."""


class ChapterTable(Written):
    def lines(self) -> Iterator[str]:
        yield from ("| Chapter | What you will have built by its end |", "|---|---|")
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / "_toc.yml"))
        for page in lessons(root):
            file = root / f"{page}.md"
            self.env.note_dependency(str(file))
            label = f"sec-{file.stem.replace('_', '-')}"
            builds = front_matter(file).get("builds")
            if not builds:
                raise self.error(f"chapter-table: {file.name} does not say in its front matter what it builds.")
            yield f"| {chapters(root)[page]} {{ref}}`{label}` | {builds} |"


class Room(Written):
    required_arguments = 1
    option_spec: ClassVar[dict] = dict.fromkeys(["modules", "without", "without-modules"], directives.unchanged)

    def lines(self) -> Iterator[str]:
        name = self.arguments[0]
        there = [file.stem for file in sorted((Path(self.env.srcdir) / "src" / PACKAGE / name).glob("[!_]*.py"))]
        hidden = self.options.get("without-modules", "").split(", ")
        chosen = self.options["modules"].split(", ") if "modules" in self.options else there
        yield "```{eval-rst}"
        for module in chosen:
            if module not in hidden:
                yield f".. automodule:: {PACKAGE}.{name}.{module}"
                yield f"   :exclude-members: {self.options.get('without', '')}"
        yield "```"


class NameIndex(Written):
    def lines(self) -> Iterator[str]:
        places = called(Path(self.env.srcdir) / "src" / PACKAGE)
        objects = self.env.get_domain("py").objects
        above = {name for name, found in objects.items() if found.docname == self.env.docname and not found.aliased}
        modules = {name for name in above if objects[name].objtype == "module"}
        names = [name for name in above - modules if name.rpartition(".")[0] in modules]
        by_letter = itertools.groupby(sorted(names, key=last), key=lambda name: last(name)[0][0])
        for letter, found in by_letter:
            links = (
                f"{{py:obj}}`{places.get(name.rpartition('.')[2], name.rpartition('.')[2])} <{name}>`" for name in found
            )
            yield from (f"**{letter.upper()}** {' · '.join(links)}", "")


def last(name: str) -> tuple[str, str]:
    """What a name is sorted by: its last part, whatever its capitals."""
    short = name.rpartition(".")[2]
    return short.strip("_").lower(), short


def called(package: Path) -> dict[str, str]:
    """How what the package and its rooms export is called: `pf.attend`, `pf.data.windows`."""
    places = {}
    for file in (*sorted(package.glob("*/__init__.py")), package / "__init__.py"):
        room = "pf." if file.parent == package else f"pf.{file.parent.name}."
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                places.update({alias.name: room + alias.name for alias in node.names})
    return places


def front_matter(page: Path) -> dict:
    """What a page says above its text, between two lines of hyphens."""
    _, above, _ = page.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(above)


def connect(app: Sphinx) -> None:
    app.add_directive("chapter-table", ChapterTable)
    app.add_directive("room", Room)
    app.add_directive("name-index", NameIndex)
