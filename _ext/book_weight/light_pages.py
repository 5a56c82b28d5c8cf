"""Make every written page light: what blocks its first picture goes, or waits until the page stands.

Sphinx, the theme and its extensions each add their scripts to the head of each page, where the browser runs them before
it shows anything. Here they wait, and those that a page has no use for go. Pictures are told their size, so that the
text does not move when they arrive. All of this leaves as it is what it has changed before.
"""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from PIL import Image

# Sphinx's own search, in whose place stands `search.mjs`; and icons as a script, in whose place stands a font.
UNUSED = ("searchtools.js", "language_data.js", "searchindex.js", "sphinx_highlight.js", "fontawesome.js")
# Scripts that find nothing to do on a page without this.
NEEDS = {
    "design-tabs.js": "sd-tab-set",
    "clipboard.min.js": '<div class="highlight',
    "copybutton.js": '<div class="highlight',
    "togglebutton.js": "dropdown",
}
OPTIONS = "documentation_options.js"
SCRIPT = re.compile(r'<script\b([^>]*?)\bsrc="([^"]+)"([^>]*)></script>\n?')
PICTURE = re.compile(r'<img\b(?![^>]*\bwidth=)([^>]*?)\bsrc="([^"]+)"([^>]*?)\s*/?>')
POINT = 4 / 3  # of a typographer, in pixels


def scripts_that_wait(page: str, options: str) -> str:
    """Let scripts wait, and drop those without use; `options` is what Sphinx's own are told."""

    def change(found: re.Match) -> str:
        before, address, after = found.groups()
        name = Path(urlsplit(address).path).name
        if name in UNUSED or NEEDS.get(name, "") not in page:
            return ""
        if name == OPTIONS:  # what stands in the page reads it at once
            return f"<script>{options}</script>\n"
        waits = re.search(r"\b(defer|async|module)\b", before + after)
        return found[0] if waits else f'<script defer{before} src="{address}"{after}></script>\n'

    return SCRIPT.sub(change, page)


def without_hurry(page: str) -> str:
    """A script that waits is not fetched ahead."""
    return re.sub(r'<link rel="preload" as="script"[^>]*>\n?', "", page)


def one_viewport(page: str) -> str:
    first, *rest = re.split(r'(?=<meta name="viewport")', page)
    if not rest:
        return page
    kept, *others = rest
    return first + kept + "".join(re.sub(r"^<meta[^>]*>\n?", "", other) for other in others)


def titles_once(page: str) -> str:
    """Without empty headings, and with the book's name once in the title of the tab."""
    return re.sub(r"<title>(.+?) &#8212; \1</title>", r"<title>\1</title>", page.replace("<h1></h1>", ""))


def without_old_roles(page: str) -> str:
    """The bibliography is given roles that assistive technology no longer supports, or not in that place."""
    return page.replace(' role="doc-biblioentry"', "").replace(' role="list" class="citation-list"', "")


def sized_pictures(page: str, file: Path) -> str:
    """Tell pictures their size; `file` says where the page lies."""
    return PICTURE.sub(lambda found: sized(found, file), page)


def sized(picture: re.Match, page: Path) -> str:
    before, address, after = picture.groups()
    file = page.parent / unquote(urlsplit(address).path)
    # The icons of buttons lie elsewhere; what sizes them is the style sheet.
    if "_images/" not in address or not file.is_file() or (size := size_of(file)) is None:
        return picture[0]
    attributes = f'{before}src="{address}"{after}'.strip()
    lazy = "" if "loading=" in attributes else ' loading="lazy"'
    return f'<img {attributes} width="{size[0]}" height="{size[1]}"{lazy} />'


@cache
def size_of(file: Path) -> tuple[int, int] | None:
    """Return the width and height of a picture in pixels; None if it does not say."""
    if file.suffix != ".svg":
        with Image.open(file) as picture:
            return picture.size
    root = ElementTree.parse(file).getroot()
    sides = [re.fullmatch(r"([\d.]+)(px|pt)?", root.get(side, "")) for side in ("width", "height")]
    if all(sides):
        width, height = (float(side[1]) * (POINT if side[2] == "pt" else 1) for side in sides)
        return round(width), round(height)
    box = root.get("viewBox", "").split()
    return (round(float(box[2])), round(float(box[3]))) if len(box) == 4 else None
