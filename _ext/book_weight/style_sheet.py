"""One style sheet for the site, of the rules that its pages can use.

The theme brings Bootstrap and two thousand icons, each extension a sheet of its own, and a browser shows nothing until
it has read them all. lightningcss makes one of the sheets that every page links to, in their order, and leaves out the
rules for classes that no page and no script names. The sheets of single pages stay as they are, after it.
"""

import hashlib
import html
import re
from collections.abc import Iterable
from pathlib import Path

import lightningcss

SHEET = "site.css"
LINK = re.compile(r'[ \t]*<link\b[^>]*\bhref="([^"?]*_static/)([^"?]+\.css)(?:\?[^"]*)?"[^>]*>\n?')
OF = re.compile(r'\bdata-of="([^"]*)"')
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
# Bootstrap puts these names together when it needs them.
MADE_BY_SCRIPTS = "bs-"


def linked(page: str) -> list[str]:
    """The sheets of a page, in order, seen from `_static`: also those that have become one before."""
    sheets = []
    for link in LINK.finditer(page):
        before = OF.search(link[0])
        sheets += before[1].split() if before else [link[2]]
    return sheets


def common_sheets(pages: Iterable[str]) -> list[str]:
    """The sheets that every page links to, in order."""
    first, *others = map(linked, pages)
    return [sheet for sheet in first if all(sheet in other for other in others)]


def names(pages: Iterable[str], scripts: Iterable[str]) -> set[str]:
    """What a page or script may call an element: its classes and ids, and every word of a script."""
    said = {name for page in pages for value in re.findall(r'\b(?:class|id)="([^"]*)"', page) for name in value.split()}
    return said.union(*(re.findall(r"[\w-]+", script) for script in scripts))


def write_sheet(sheets: list[str], used: set[str], static: Path) -> str:
    """Write the one sheet and return a mark of what it holds."""
    file = static / SHEET
    file.write_text("".join(f'@import "{sheet}";\n' for sheet in sheets), encoding="utf-8")
    whole = lightningcss.bundle_css(str(file))
    kept = used.union(re.findall(r"@keyframes ([\w-]+)", whole))
    unused = {name for name in set(CLASS.findall(whole)) - kept if not name.startswith(MADE_BY_SCRIPTS)}
    # Addresses stay as the sheet has them that they come from; those in a folder below go up one too many.
    text = lightningcss.bundle_css(str(file), unused_symbols=unused).replace("url(../", "url(")
    file.write_text(text, encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def link_once(page: str, sheets: list[str], digest: str) -> str:
    """Put the link to the one sheet where the first of its parts was linked."""
    ours = [link for link in LINK.finditer(page) if OF.search(link[0]) or link[2] in sheets]
    for link in reversed(ours):
        parts = html.escape(" ".join(sheets))
        one = f'<link rel="stylesheet" href="{link[1]}{SHEET}?v={digest}" data-of="{parts}" />\n'
        page = page[: link.start()] + (one if link is ours[0] else "") + page[link.end() :]
    return page
