"""Two lists that make themselves: the chapters with what each builds, and the modules of a room of the package.

    ```{chapter-table}
    ```

    ```{room} attention
    :without: at_least_float32, ready_to_extend
    :without-modules: lists
    ```

A chapter says in its front matter what a reader will have built by its end (`builds: …`). The reference shows every
module of a room, but for names and modules that are the package's own.
"""

import abc
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

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
        for file in sorted((Path(self.env.srcdir) / "chapters").glob("[0-9]*_*.md")):
            self.env.note_dependency(str(file))
            number, _, stem = file.stem.partition("_")
            label = f"sec-{stem.replace('_', '-')}"
            builds = front_matter(file).get("builds")
            if not builds:
                raise self.error(f"chapter-table: {file.name} does not say in its front matter what it builds.")
            yield f"| {int(number) or ''} {{ref}}`{label}` | {builds} |"


class Room(Written):
    required_arguments = 1
    option_spec: ClassVar[dict] = {"without": directives.unchanged, "without-modules": directives.unchanged}

    def lines(self) -> Iterator[str]:
        name = self.arguments[0]
        hidden = self.options.get("without-modules", "").replace(" ", "").split(",")
        yield "```{eval-rst}"
        for file in sorted((Path(self.env.srcdir) / "src" / PACKAGE / name).glob("*.py")):
            if file.stem != "__init__" and file.stem not in hidden:
                yield f".. automodule:: {PACKAGE}.{name}.{file.stem}"
                yield f"   :exclude-members: {self.options.get('without', '')}"
        yield "```"


def front_matter(page: Path) -> dict:
    """What a page says above its text, between two lines of hyphens."""
    _, above, _ = page.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(above)


def connect(app: Sphinx) -> None:
    app.add_directive("chapter-table", ChapterTable)
    app.add_directive("room", Room)
