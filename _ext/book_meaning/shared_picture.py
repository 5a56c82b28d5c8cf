"""The picture that a shared link to a page shows: the still picture of its first live figure that is all lit.

Pages without one, and the landing page, have the card of the book. A fragment never reaches a server, so a link to a
state of the figure shows the same picture.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from book_meaning.live_figure import live_figure


def size(picture: Path) -> tuple[int, int]:
    """The width and the height that a PNG file begins with."""
    start = picture.read_bytes()[:24]
    return int.from_bytes(start[16:20], "big"), int.from_bytes(start[20:24], "big")


def tell(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Add the picture, its size and its words to what the page says of itself, unless its author named one."""
    if "ogp_image" not in app.config:
        return
    said = context["meta"] = dict(context.get("meta") or {})
    figures = [] if doctree is None or pagename == app.config.root_doc else doctree.findall(live_figure)
    pictures = (each[0] for each in figures if "data-lit" not in each["attributes"])
    still = next((each for each in pictures if isinstance(each, nodes.image)), None)
    picture = Path(app.srcdir, app.config.ogp_image)
    if still is not None:
        name = Path(still["uri"]).name
        picture = Path(app.srcdir, "widgets", name)
        said.setdefault("og:image", f"{app.builder.imagedir}/{name}")
        said.setdefault("og:image:alt", still["alt"])
    width, height = size(picture)
    said["og:image:width"], said["og:image:height"] = str(width), str(height)


def connect(app: Sphinx) -> None:
    app.connect("html-page-context", tell, priority=400)  # before what writes the tags
