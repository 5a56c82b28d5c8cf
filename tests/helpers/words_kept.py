"""Which words of a page its notebook has lost."""

import re
from collections import Counter
from collections.abc import Iterator

from docutils import nodes
from notebook_markdown import NOT_SHOWN


def texts(node: nodes.Node) -> Iterator[str]:
    """All that a reader of the page reads, but what the notebook says otherwise: the line in the link to a source."""
    if isinstance(node, nodes.Text):
        yield node.astext()
    elif type(node).__name__ not in NOT_SHOWN and "listing-source" not in node.get("classes", []):
        is_solution = type(node).__name__ == "solution_node"  # its title repeats that of the exercise
        for child in node.children[is_solution:]:
            yield from texts(child)


def words(parts) -> Counter:
    return Counter(re.findall(r"[^\W_]+", " ".join(parts)))


def words_lost(page: nodes.document, cells) -> list[str]:
    """The words that stand more often on a page than in the cells of its notebook."""
    return sorted(words(texts(page)) - words(cell.source for cell in cells))
