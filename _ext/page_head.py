"""What stands in the head of each page: its title, and the fonts that its first screen needs.

The landing page is called like the book, so the theme would write its name twice.
"""

from sphinx.application import Sphinx

# Regular and bold come in one file. Italics, and letters of other languages, come when a page has one.
FONTS = ("sans-latin", "mono-latin")
PRELOAD = '<link rel="preload" href="{}" as="font" type="font/woff2" crossorigin="anonymous" />\n'


def complete(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    address = context["pathto"]
    links = (PRELOAD.format(address(f"_static/fonts/{font}.woff2", 1)) for font in FONTS)
    context["metatags"] = context.get("metatags", "") + "".join(links)
    if pagename == app.config.root_doc:
        context["title"] = app.config.book_title
        context["docstitle"] = ""


def setup(app: Sphinx) -> dict:
    app.add_config_value("book_title", app.config.project, "html")
    app.connect("html-page-context", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
