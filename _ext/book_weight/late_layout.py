"""Tell the browser about how high each section is, so that it need not lay out a long page before it shows the first.

`pages.css` has the sections wait until the reader comes near. What keeps their place is estimated here, on the large
side: sections that turn out higher than their place would lie over the next one until they are reached.
"""

import re
from pathlib import Path

from book_meaning.live_figure import live_figure
from book_meaning.order import lessons
from docutils import nodes
from sphinx.application import Sphinx

# Pixels on a phone, fitted to the heights of the book's sections: nine in ten are within a third of it.
CHARACTER, LINE, PARAGRAPH, EQUATION, PICTURE, LIVE = 0.7, 20, 27, 220, 300, 1600
AMPLE = 1.25
# Only their titles are seen at first.
FOLDED = {"dropdown", "toggle", "tag_hide-input", "tag_hide-output", "tag_hide-cell"}


def height(node: nodes.Node) -> float:
    """Return about how many pixels high a part of a page is on a phone."""
    if isinstance(node, nodes.literal_block):
        return PARAGRAPH + LINE * (node.astext().count("\n") + 1)
    if isinstance(node, nodes.paragraph | nodes.title):
        return PARAGRAPH + CHARACTER * len(node.astext())
    for kind, pixels in ((nodes.math_block, EQUATION), (nodes.image, PICTURE), (live_figure, LIVE)):
        if isinstance(node, kind):
            return pixels
    if isinstance(node, nodes.raw | nodes.Text):
        return 0
    if FOLDED.intersection(node.get("classes", [])):
        return 2 * PARAGRAPH
    heights = [height(child) for child in node.children]
    return max(heights, default=0) if isinstance(node, nodes.row) else sum(heights)  # cells stand side by side


def keep_places(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document) -> None:
    if doctree is None or app.builder.format != "html" or pagename not in lessons(Path(app.srcdir)):
        return  # tables and lists of the appendix are not estimated well
    tops = [node for node in doctree.children if isinstance(node, nodes.section)]
    for section in (part for top in tops for part in top.children if isinstance(part, nodes.section)):
        opening = re.compile(rf'<section\b(?=[^>]*\bid="{re.escape(section["ids"][0])}")')
        style = f'<section style="--room: {AMPLE * height(section):.0f}px"'
        context["body"] = opening.sub(style, context["body"], count=1)
