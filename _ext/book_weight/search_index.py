"""What the search of the site looks through: the words of every section, glossary term and entry of the reference.

Sphinx's own index knows pages only, and is loaded by every page before it is shown. This one is a file that
`search.mjs` fetches when a reader begins to search. It holds what an article says, and neither its code nor what
surrounds it; a formula is written as one would type it.
"""

import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from book_meaning.order import as_read
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from .mathematics import to_mathml

HERE = Path(__file__).parent
INDEX = "_static/search.json"
SCRIPTS = ("page.mjs", "search.mjs")
UNSAID = (nodes.literal_block, nodes.math_block, nodes.raw, nodes.comment, nodes.image, nodes.title, nodes.Invisible)
# References that show a number or authors, which are not known yet where the page has just been read.
NUMBERS = {("cite", "p"), ("cite", "t"), ("math", "eq"), ("std", "numref")}

Entry = tuple[str, str, str]  # the anchor, the title, the words


# A card is found by its headings: all its settings would be a sixth of the file.
CARDS = "appendix/cards/"
# Links to the code below a listing, what cells print, and links to the tests of claims.
BESIDE = {"listing-source", "cell_output", "claim"}


def is_unsaid(node: nodes.Node) -> bool:
    return isinstance(node, UNSAID) or bool(BESIDE.intersection(node.get("classes", [])))


def stands_apart(node: nodes.Node) -> bool:
    """Whether a node has entries of its own, so that the section around it need not say it again."""
    # The content of exercises and proofs is a section without a title.
    titled = isinstance(node, nodes.section) and isinstance(next(iter(node.children), None), nodes.title)
    return titled or isinstance(node, addnodes.desc | addnodes.glossary)


def entries(document: nodes.document) -> Iterator[Entry]:
    for node in document.findall(stands_apart):
        if isinstance(node, nodes.section):
            yield node["ids"][0], words(node[0]), words(node)
        elif isinstance(node, addnodes.glossary):
            yield from terms(node)
        else:
            yield from described(node)


def terms(glossary: addnodes.glossary) -> Iterator[Entry]:
    for item in glossary.findall(nodes.definition_list_item):
        term = next(iter(item.findall(nodes.term)))
        yield term["ids"][0], words(term), " ".join(map(words, item.findall(nodes.definition))).rstrip(" →")


def explained(app: Sphinx, document: nodes.document) -> dict[str, str]:
    """The address of the section to which the entry of each term leads."""
    found = {}
    for item in document.findall(nodes.definition_list_item):
        for link in item.findall(lambda node: isinstance(node, addnodes.pending_xref) and node["reftype"] == "myst"):
            _, anchor, _ = app.env.metadata[link["reftarget"]]["myst_slugs"][link["reftargetid"]]
            term = next(iter(item.findall(nodes.term)))
            found[term["ids"][0]] = f"{app.builder.get_target_uri(link['reftarget'])}#{anchor}"
    return found


def described(entry: addnodes.desc) -> Iterator[Entry]:
    """A function, class or module of the reference: its name, and what its docstring begins with."""
    signature = entry[0]
    if signature.get("ids"):
        first = next(iter(entry[-1].findall(nodes.paragraph)), nodes.paragraph())
        yield signature["ids"][0], signature.get("fullname", signature.astext()), words(first)


def words(node: nodes.Node) -> str:
    return re.sub(r"\s+", " ", "".join(said(node, node))).strip()


def said(node: nodes.Node, top: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.Text):
        yield str(node)
    elif isinstance(node, nodes.math):
        yield typed(node.astext())
    elif isinstance(node, addnodes.pending_xref) and (node["refdomain"], node["reftype"]) in NUMBERS:
        yield ""
    elif node is top or not (is_unsaid(node) or stands_apart(node)):
        for child in node.children:
            yield from said(child, top)
        if not isinstance(node, nodes.Inline):
            yield " "


# --- Formulas -------------------------------------------------------------------------------------------------


def typed(tex: str) -> str:
    """Return a formula in one line of plain characters: d_k, 1/√d_k, softmax(QK^T)."""
    try:
        formula = to_mathml(tex, False)
    except ValueError:
        return tex  # mathematics.py has warned of it
    line = unicodedata.normalize("NFKC", linear(ElementTree.fromstring(formula)))
    return re.sub(r"\s+", " ", line.replace("\u2061", "")).strip()


def linear(element: ElementTree.Element) -> str:
    parts = [linear(child) for child in element]
    joints = {"msub": "_", "msup": "^", "mfrac": "/", "munder": "_"}
    if element.tag in joints:
        return joints[element.tag].join(map(bracketed, parts))
    if element.tag in ("msubsup", "munderover"):
        base, below, above = map(bracketed, parts)
        return f"{base}_{below}^{above}"
    if element.tag == "msqrt":
        return "√" + bracketed("".join(parts))
    if element.tag == "mover":
        return parts[0]
    if element.tag == "mspace":
        return " "
    room = " " if any(element.get(side, "0") != "0" for side in ("lspace", "rspace")) else ""
    text = element.text or ""
    return "".join(parts) or (f"{text} " if text == "," else f"{room}{text}{room}")


def bracketed(part: str) -> str:
    return f"({part.strip()})" if re.search(r"[\s+−=×⋅/]", part.strip()) else part.strip()


def name_sections(document: nodes.document, labels: dict[str, tuple[str, str, str]]) -> nodes.document:
    """Have references show the titles of sections, as on the page; those that show numbers there say nothing."""
    for reference in document.findall(addnodes.pending_xref):
        if reference["reftype"] == "ref" and not reference["refexplicit"]:
            _, _, title = labels.get(reference["reftarget"], ("", "", ""))
            reference.children = [nodes.Text(title)]
    return document


# --- The file -------------------------------------------------------------------------------------------------


def write_index(app: Sphinx) -> None:
    pages, labels = [], app.env.get_domain("std").labels
    for docname in as_read(app.env):
        numbers = app.env.toc_secnumbers.get(docname, {})
        title = numbered(numbers.get(""), words(app.env.titles[docname]))
        document = name_sections(app.env.get_doctree(docname), labels)
        explaining = explained(app, document)
        found = [
            (anchor, numbered(numbers.get(f"#{anchor}"), heading), text, *filter(None, [explaining.get(anchor)]))
            for anchor, heading, text in entries(document)
        ]
        if docname.startswith(CARDS):
            found = [(anchor, heading, "") for anchor, heading, *_ in found]
        pages.append((app.builder.get_target_uri(docname), title, found))
    text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    (Path(app.outdir) / INDEX).write_text(text, encoding="utf-8")


def numbered(number: tuple[int, ...] | None, title: str) -> str:
    return f"{'.'.join(map(str, number))}. {title}" if number else title


def copy_scripts(site: Path) -> None:
    for script in SCRIPTS:
        shutil.copy(HERE / script, site / "_static")


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    app.add_js_file("page.mjs", type="module")
