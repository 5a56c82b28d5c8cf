"""What cells print: tables of numbers keep their columns, and everything else goes on in the next line.

A sentence, such as an error message, may be as long as four lines of the page. `book.css` wraps what is called `words`
here; a table scrolls in its box where the page is too narrow for it.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

# Two words or numbers with more than a blank between them, or a row of an array.
ROW = re.compile(r"\S {2,}\S|^\s*\[+ ?-?[\d.]")


def is_table(printed: str) -> bool:
    """Whether lines of what was printed stand in columns: at least two of them are rows."""
    return sum(bool(ROW.search(line)) for line in printed.splitlines()) >= 2


def mark_words(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for block in doctree.findall(nodes.literal_block):
        if "output" in block["classes"] and not is_table(block.astext()):
            block["classes"].append("words")


def connect(app: Sphinx) -> None:
    app.connect("doctree-resolved", mark_words)
