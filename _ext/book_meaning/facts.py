"""Facts: what a record says, in a sentence by the `fact` role, and as a table by the `facts` directive.

    right in {fact}`staircase.head.where.0` % of the cases

    ```{facts} staircase.rows.head
    ```

The record `lab/<name>/record.json` has them as text under "facts", written by the script that made it. A name that
is not there fails the build; a number that has changed changes the page, and the notebook that is made from it.
"""

import difflib
import functools
import json
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole


@functools.cache
def _facts(path: Path, changed: float) -> dict[str, str]:
    try:
        return json.loads(path.read_text(encoding="utf-8")).get("facts") or {}
    except (ValueError, AttributeError) as error:
        raise LookupError(f"{path} cannot be read: {error}.") from error


def fact(env: BuildEnvironment, place: str) -> str:
    """Return the text of a fact, such as `staircase.head.where.0`; raise `LookupError` where there is none."""
    record, _, name = place.partition(".")
    path = Path(env.srcdir) / "lab" / record / "record.json"
    env.note_dependency(str(path))  # if it is not there, the page is read again when it is
    if not path.is_file():
        raise LookupError(f"there is no record {record!r} in lab/.")
    facts = _facts(path, path.stat().st_mtime)
    if name not in facts:
        raise LookupError(f"the record {record!r} has no fact {name!r}; it has {nearest(name, facts)}.")
    return facts[name]


def nearest(name: str, known: Iterable[str]) -> str:
    """Of known names those that are most alike, or the first."""
    return ", ".join(difflib.get_close_matches(name, known, n=3) or sorted(known)[:3]) or "none"


class Fact(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            return [nodes.Text(fact(self.env, self.text))], []
        except LookupError as error:
            self.env.note_reread()
            message = self.inliner.reporter.error(f"fact: {error.args[0]}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]


class Facts(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        try:
            found = self.parse_text_to_nodes(fact(self.env, self.arguments[0]))
        except LookupError as error:
            raise self.error(f"facts: {error.args[0]}") from None
        for table in (each for node in found for each in node.findall(nodes.table)):
            table["classes"].append("facts")
        return found


def connect(app: Sphinx) -> None:
    app.add_role("fact", Fact())
    app.add_directive("facts", Facts)
