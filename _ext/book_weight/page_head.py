"""The head of each page: its title, its description, the fonts of its first screen, and what helps in reading.

The landing page is called like the book, so the theme would write its name twice.
"""

import html
import re

from sphinx.application import Sphinx

# Regular and bold come in one file. Italics, and letters of other languages, come when a page has one.
FONTS = ("sans-latin", "mono-latin")
PRELOAD = '<link rel="preload" href="{}" as="font" type="font/woff2" crossorigin="anonymous" />\n'
DESCRIPTION = re.compile(r'(<meta (?:name|property)="(?:og:)?description" content=")([^"]*)(")')
ROOT = re.compile(r"\s*\\sqrt\{(\w+)\}")


def described(tags: str, words: str | None) -> str:
    """The tags with these words as the page's description; without any, with its first paragraph, but no TeX in it."""
    return DESCRIPTION.sub(
        lambda tag: tag[1] + (html.escape(words) if words else ROOT.sub(r" √\1", tag[2])) + tag[3], tags
    )


def complete(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    address = context["pathto"]
    links = (PRELOAD.format(address(f"_static/fonts/{font}.woff2", 1)) for font in FONTS)
    words = (context.get("meta") or {}).get("og:description")
    context["metatags"] = described(context.get("metatags", ""), words) + "".join(links)
    if pagename == app.config.root_doc:
        context["title"] = app.config.book_title
        context["docstitle"] = ""


def connect(app: Sphinx) -> None:
    app.add_config_value("book_title", app.config.project, "html")
    app.connect("html-page-context", complete, priority=900)  # after what writes the description
    app.add_js_file("reading.mjs", type="module")
    app.add_js_file("remembered.mjs", type="module")
