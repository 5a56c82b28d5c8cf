"""The book's schematics: `drawings.draw` gives each public function's picture by name."""

import functools
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "_ext"))


@functools.cache
def number(chapter: str) -> str:
    """The number of a chapter, as the table of contents gives it."""
    from book_meaning.order import chapters

    return chapters(ROOT)[f"chapters/{chapter}"]
