"""One style sheet for the site, of the rules that its pages can use.

The theme brings Bootstrap and two thousand icons, each extension a sheet of its own, and a browser shows nothing until
it has read them all. Here the sheets that every page links to become one, in their order, without the rules for
classes that no page and no script names. The sheets of single pages stay as they are, after it.
"""

import hashlib
import html
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

SHEET = "site.css"
LINK = re.compile(r'[ \t]*<link\b[^>]*\bhref="([^"?]*_static/)([^"?]+\.css)(?:\?[^"]*)?"[^>]*>\n?')
OF = re.compile(r'\bdata-of="([^"]*)"')
IMPORT = re.compile(r'@import\s+(?:url\()?["\']?([^"\')]+)["\']?\)?\s*;')
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
# `:is(.a, .b)` may match without one of its classes, and `:not(.a)` without its only one.
ALTERNATIVES = re.compile(r":(?:is|not|where|has)\((?:[^()]|\([^()]*\))*\)")
WITH_RULES = ("@media", "@supports", "@layer", "@container")
# Bootstrap puts these names together when it needs them.
MADE_BY_SCRIPTS = re.compile(r"bs-")


# --- The sheets -----------------------------------------------------------------------------------------------


def linked(page: str) -> list[str]:
    """The sheets of a page, in order, seen from `_static`: also those that have become one before."""
    sheets = []
    for link in LINK.finditer(page):
        before = OF.search(link[0])
        sheets += before[1].split() if before else [link[2]]
    return sheets


def read(places: list[Path], sheet: str) -> str:
    """A sheet, from the first place that has it, with what it imports and with addresses as seen from `_static`."""
    folder = posixpath.dirname(sheet)
    file = next(place / sheet for place in places if (place / sheet).is_file())
    text = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)

    def moved(found: re.Match) -> str:
        address = found[1].strip("\"'")
        if re.match(r"[a-z]+:|#|/", address):
            return found[0]
        return f'url("{posixpath.normpath(posixpath.join(folder, address))}")'

    text = re.sub(r"url\(\s*(\"[^\"]*\"|'[^']*'|[^)'\"]*)\s*\)", moved, text)
    imported = IMPORT.sub(lambda found: read(places, posixpath.normpath(posixpath.join(folder, found[1]))), text)
    return re.sub(r'@charset "[^"]*";', "", imported)


def blocks(sheet: str) -> Iterator[tuple[str, str]]:
    """What stands before the braces and what between them; a statement has nothing between them."""
    depth = start = opened = 0
    for found in re.finditer(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[{};]", sheet):
        sign, end = found[0], found.end()
        if sign == "{":
            depth += 1
            opened = end if depth == 1 else opened
        elif sign == "}":
            depth -= 1
            if depth == 0:
                yield sheet[start : opened - 1].strip(), sheet[opened : end - 1].strip()
                start = end
        elif sign == ";" and depth == 0:
            yield sheet[start:end].strip(), ""
            start = end


def prune(sheet: str, names: set[str]) -> str:
    """Return a sheet without the selectors that ask for a class which does not exist."""
    kept = []
    for before, inside in blocks(sheet):
        if before.startswith(WITH_RULES):
            inside = prune(inside, names)
        elif not before.startswith("@"):
            before = ",".join(selector for selector in selectors(before) if is_used(selector, names))
        if before.endswith(";"):
            kept.append(before)
        elif before and inside:
            kept.append(f"{before}{{{inside}}}")
    return "\n".join(kept)


def selectors(text: str) -> list[str]:
    return re.split(r",(?![^()]*\))(?![^(]*\([^()]*\)[^()]*\))", text)


def is_used(selector: str, names: set[str]) -> bool:
    classes = CLASS.findall(ALTERNATIVES.sub("", selector))
    return all(name in names or MADE_BY_SCRIPTS.match(name) for name in classes)


# --- The pages ------------------------------------------------------------------------------------------------


def names_of_classes(pages: list[str], scripts: list[str]) -> set[str]:
    names = {name for page in pages for value in re.findall(r'\bclass="([^"]*)"', page) for name in value.split()}
    return names.union(*(re.findall(r"[\w-]+", script) for script in scripts))


def link_once(page: str, sheets: list[str], digest: str) -> str:
    """Put the link to the one sheet where the first of its parts was linked."""
    first = next((link for link in LINK.finditer(page) if OF.search(link[0]) or link[2] in sheets), None)
    if first is None:
        return page
    parts = html.escape(" ".join(sheets))
    one = f'<link rel="stylesheet" href="{first[1]}{SHEET}?v={digest}" data-of="{parts}" />\n'
    rest = LINK.sub(lambda link: "" if OF.search(link[0]) or link[2] in sheets else link[0], page[first.end() :])
    return page[: first.start()] + one + rest


def common_sheets(pages: Iterable[str]) -> list[str]:
    """The sheets that every page links to, in order."""
    first, *others = map(linked, pages)
    return [sheet for sheet in first if all(sheet in other for other in others)]


def write_sheet(pages: list[str], sheets: list[str], own: Path, static: Path) -> str:
    """Write the one sheet and return a mark of what it holds."""
    scripts = [file.read_text(encoding="utf-8") for file in static.rglob("*js") if file.suffix in {".js", ".mjs"}]
    # The book's own come from where they are written: where no page has changed, Sphinx does not copy them.
    whole = "\n".join(read([own, static], sheet) for sheet in sheets)
    text = prune(whole, names_of_classes(pages, scripts))
    (static / SHEET).write_text(text, encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:8]
