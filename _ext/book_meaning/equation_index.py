"""The index of the equations: where each stands, the code that computes it, the tests that prove it.

The directive `equation-index` on the page PAGE becomes a table for each chapter, and below each labelled equation
of a chapter a link leads to its row. An equation without code or without a test is a warning, and so fails the
build, unless its label ends in `-definition`.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .addresses import source_address
from .equation_claims import Place, implementations, is_definition, missing, proofs
from .order import as_read

LOGGER = logging.getLogger(__name__)
PAGE = "appendix/equations"
COLUMNS = {"Number": 12, "Equation": 25, "Code": 24, "Tests": 39}
NOTHING = {"Code": "a definition: nothing to compute", "Tests": "a definition: nothing to prove"}


class equation_index(nodes.General, nodes.Element):
    """Stands where the tables will be: only when all pages have been read is it known what goes into them."""


class row_link(nodes.General, nodes.Element):
    """Leads from an equation to its row."""


class EquationIndex(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        index = equation_index()
        self.set_source_info(index)
        return [index]


def row_id(label: str) -> str:
    return nodes.make_id(f"row-{label}")


def labelled(document: nodes.document) -> list[nodes.math_block]:
    return [node for node in document.findall(nodes.math_block) if node.get("label")]


def all_labelled(env: BuildEnvironment) -> Iterator[tuple[str, nodes.math_block]]:
    """Every labelled equation with its page, in the order of the book."""
    there = {docname for docname, _ in env.get_domain("math").equations.values()}
    for docname in (page for page in as_read(env) if page in there):
        for equation in labelled(env.get_doctree(docname)):
            yield docname, equation


# --- The tables -----------------------------------------------------------------------------------------------


class MakeIndex(SphinxPostTransform):
    """Put in the tables and the links, before Sphinx resolves references: those in the tables are Sphinx's own."""

    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for index in list(self.document.findall(equation_index)):
            tables = self.tables()
            for found in (found for part in tables for found in part.findall(addnodes.pending_xref)):
                found.source, found.line = index.source, index.line
            index.replace_self(tables)
        if PAGE in self.env.found_docs and self.env.docname != PAGE:
            for equation in labelled(self.document):
                add_row_link(self.app, self.env.docname, equation)

    def tables(self) -> list[nodes.Node]:
        chapters = [(name, list(found)) for name, found in groupby(all_labelled(self.env), lambda pair: pair[0])]
        sections, contents = [], nodes.bullet_list()
        for docname, equations in chapters:
            title, anchor = chapter_title(self.env, docname), nodes.make_id(f"rows-{docname}")
            link = nodes.reference("", title, refuri=f"#{anchor}", internal=True)
            contents += nodes.list_item("", nodes.paragraph("", "", link))
            rows = [self.row(equation) for _, equation in equations]
            sections.append(nodes.section("", nodes.title("", title), table(rows), ids=[anchor]))
        return [contents, *sections]

    def row(self, equation: nodes.math_block) -> nodes.row:
        label = equation["label"]
        implemented, tested = self.env.equation_claims
        number = reference("math", "eq", label, nodes.inline("", label))
        cells = {
            "Number": [[number]],
            "Equation": [section_title(equation), [breakable(label)]],  # and above them, the equation
            "Code": [self.code(place) for place in implemented.get(label, [])],
            "Tests": [[self.source(place, breakable(place.name))] for place in tested.get(label, [])],
        }
        row = nodes.row(ids=[row_id(label)])
        for column, lines in cells.items():
            lines = lines or [[nodes.Text(NOTHING[column] if is_definition(label) else "missing")]]
            row += nodes.entry("", *(nodes.paragraph("", "", *line) for line in lines))
        row[1].children = [shown(equation), nodes.container("", *row[1].children, classes=["equation-name"])]
        return row

    def code(self, place: Place) -> list[nodes.Node]:
        """`attend` in `self_attention.py`: the first leads to the API reference, the second to the source."""
        file = PurePosixPath(place.file)
        short = place.name.partition(f".{file.stem}.")[2] or place.name
        entry = reference("py", "obj", place.name, breakable(short))
        return [entry, nodes.Text(" in "), self.source(place, nodes.Text(file.name))]

    def source(self, place: Place, shown: nodes.Node) -> nodes.reference:
        return nodes.reference("", "", shown, refuri=source_address(self.config, place.file, place.line))


def breakable(name: str) -> nodes.literal:
    """A name in code type that may go on in the next line after a dot, a hyphen or an underscore."""
    literal = nodes.literal()
    for part in re.split(r"(?<=[._-])", name):
        literal += [nodes.Text(part), nodes.raw("", "<wbr>", format="html")]
    return literal


def reference(domain: str, role: str, target: str, shown: nodes.Node) -> addnodes.pending_xref:
    """What the role would write: a link to be resolved, and a warning if it leads nowhere."""
    return addnodes.pending_xref(
        "", shown, refdomain=domain, reftype=role, reftarget=target, refdoc=PAGE, refexplicit=True, refwarn=True
    )


def chapter_title(env: BuildEnvironment, docname: str) -> str:
    number = env.toc_secnumbers.get(docname, {}).get("", ())
    chapter = f"Chapter {'.'.join(map(str, number))}: " if number else ""
    return chapter + env.titles[docname].astext()


def shown(equation: nodes.math_block) -> nodes.math_block:
    """The equation once more, without its number."""
    text = equation.astext()
    return nodes.math_block(text, text, number=None, label=None, nowrap=equation.get("nowrap", False))


def section_title(node: nodes.Node) -> list[nodes.Node]:
    """Return a copy of the title above a node."""
    while not isinstance(node, nodes.section):
        node = node.parent
    return [part.deepcopy() for part in node[0].children]


def table(rows: list[nodes.row]) -> nodes.table:
    group = nodes.tgroup("", cols=len(COLUMNS))
    for position, width in enumerate(COLUMNS.values()):
        group += nodes.colspec("", colwidth=width, stub=int(position == 0))
    head = nodes.row("", *(nodes.entry("", nodes.paragraph("", name)) for name in COLUMNS))
    group += [nodes.thead("", head), nodes.tbody("", *rows)]
    return nodes.table("", group, classes=["equation-index", "colwidths-given"])


# --- The link below each equation -----------------------------------------------------------------------------


def add_row_link(app: Sphinx, docname: str, equation: nodes.math_block) -> None:
    label = equation["label"]
    domain = app.env.get_domain("math")
    found = domain.resolve_xref(app.env, docname, app.builder, "eq", label, equation, nodes.Text(""))
    number = "" if found is None else found.astext()  # none where a page has just gone, of which Sphinx warns itself
    text = "definition" if is_definition(label) else "code and tests"
    equation.parent.insert(equation.parent.index(equation) + 1, row_link(label=label, number=number, text=text))


def visit_html(self, node: row_link) -> None:
    address = f"{self.builder.get_relative_uri(self.builder.current_docname, PAGE)}#{row_id(node['label'])}"
    name = f"{node['text']} of equation {node['number']}"
    self.body.append(f'<p class="equation-row"><a href="{address}" aria-label="{name}">{node["text"]}</a></p>\n')


def visit_nothing(self, node: nodes.Element) -> None:
    """Other writers show no link."""


# --- What is checked, and when the page is made anew ----------------------------------------------------------


def note_claims(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    """Read the claims. The index depends on all pages and all claims: it is out of date when any of them changed."""
    if app.builder.format != "html":
        return []
    root = Path(app.srcdir)
    before, env.equation_claims = getattr(env, "equation_claims", None), (implementations(root), proofs(root))
    return [PAGE] if added or changed or removed or env.equation_claims != before else []


def warn_of_missing(app: Sphinx, env: BuildEnvironment) -> None:
    for _, equation in all_labelled(env) if app.builder.format == "html" else ():
        for complaint in missing(equation["label"], *env.equation_claims):
            message = "equation index: %s (or end the label in -definition)"
            LOGGER.warning(message, complaint, location=equation, type="equation-index", subtype="missing")


def connect(app: Sphinx) -> None:
    nothing = (visit_nothing, visit_nothing)
    writers: dict[str, Any] = {"latex": nothing, "text": nothing, "man": nothing, "texinfo": nothing}
    app.add_node(equation_index, html=nothing, **writers)
    app.add_node(row_link, html=(visit_html, visit_nothing), **writers)
    app.add_directive("equation-index", EquationIndex)
    app.add_post_transform(MakeIndex)
    app.connect("env-get-outdated", note_claims)
    app.connect("env-check-consistency", warn_of_missing)
