"""The map of the machine at the top of each chapter, with the chapter's own part marked.

`drawings/map_wide.svg` and `map_narrow.svg` say which of their parts belongs to which chapter; here the parts become
links. On a phone the map is folded away.
"""

from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx

from .drawing import in_page

FOLDER = "chapters/"


def linked(app: Sphinx, name: str, docname: str) -> str:
    """One of the two maps, as it stands on a page."""
    picture = in_page(Path(app.srcdir), f"map_{name}")
    for attribute in ("role", "aria-label"):  # it is no image: what it says are its links
        picture.attrib.pop(attribute)
    for part in picture.iter("a"):
        chapter = FOLDER + part.attrib.pop("data-chapter")
        part.set("href", app.builder.get_relative_uri(docname, chapter) or "#")
        if chapter == docname:
            part.set("aria-current", "page")
    return ElementTree.tostring(picture, encoding="unicode").replace("\n", "")


def has_part(root: Path, docname: str) -> bool:
    drawn = root / "drawings/map_wide.svg"
    marked = f'data-chapter="{docname.removeprefix(FOLDER)}"'
    return docname.startswith(FOLDER) and drawn.is_file() and marked in drawn.read_text("utf-8")


def navigation(app: Sphinx, docname: str) -> nodes.raw:
    wide, narrow = linked(app, "wide", docname), linked(app, "narrow", docname)
    text = f"""<nav class="chapter-map" aria-label="Map of the book">
<div class="chapter-map-wide">{wide}</div>
<details class="chapter-map-narrow"><summary>Where this chapter stands</summary>{narrow}</details>
</nav>"""
    return nodes.raw("", text, format="html")


def put_in(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Right below the title, on pages that have a part in the map."""
    if app.builder.format == "html" and has_part(Path(app.srcdir), docname):
        title = next(doctree.findall(nodes.title))
        title.parent.insert(title.parent.index(title) + 1, navigation(app, docname))


def connect(app: Sphinx) -> None:
    app.connect("doctree-resolved", put_in)
