"""What becomes of the site when Sphinx has written it: each page is read once, goes through `changes`, is written once.

All of it leaves as it is what it has changed before, so that a page that Sphinx need not write again may go through it
again.
"""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from . import browser_python, light_pages
from .exercise_rows import with_rows
from .icons import THEME, write_icons
from .mathematics import SUBSET, write_font
from .moved import MOVED, lead_on
from .search_index import copy_scripts, write_index
from .style_sheet import common_sheets, link_once, names, write_sheet

LOGGER = logging.getLogger(__name__)
OPTIONS = "documentation_options.js"
SCRIPT = "scripts/pydata-sphinx-theme.js"
MEASURES = 'querySelectorAll(["pre",'  # where it looks for boxes that scroll


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir) / "_static"
    moved = {site / before for before in MOVED}
    pages = [file for file in sorted(site.rglob("*.html")) if static not in file.parents and file not in moved]
    written = {file: file.read_text("utf-8") for file in pages}

    copy_scripts(site)
    # A service worker answers for what lies beside and below it.
    shutil.copy(Path(app.srcdir) / "_static" / "offline.mjs", site)
    copy_sheets(app)
    scripts = [file.read_text("utf-8") for file in static.rglob("*js") if file.suffix in {".js", ".mjs"}]
    sheets = common_sheets(written.values())
    digest = write_sheet(sheets, names(written.values(), scripts), static)
    options = (static / OPTIONS).read_text(encoding="utf-8")
    python = browser_python.packed(Path(app.srcdir), site)
    for file, page in written.items():
        notebook = Path(app.srcdir) / file.relative_to(site).with_suffix(".ipynb")
        steps = [*changes(file, options, sheets, digest), partial(with_rows, notebook=notebook, python=python)]
        if (changed := through(steps, page)) != page:
            file.write_text(changed, encoding="utf-8")

    write_font(written.values(), site / SUBSET)
    write_icons(static)
    write_index(app)
    write_theme_script(static)
    offer_notebooks(app)
    lead_on(site)


# --- The pages ------------------------------------------------------------------------------------------------


def changes(file: Path, options: str, sheets: list[str], digest: str) -> list[Callable[[str], str]]:
    """What each page goes through, in this order; `file` is where it lies, `options` what Sphinx's scripts are told."""
    return [
        partial(link_once, sheets=sheets, digest=digest),
        partial(light_pages.scripts_that_wait, options=options),
        light_pages.without_hurry,
        light_pages.one_viewport,
        partial(light_pages.sized_pictures, file=file),
        light_pages.titles_once,
        light_pages.without_old_roles,
    ]


def through(steps: list[Callable[[str], str]], page: str) -> str:
    for step in steps:
        page = step(page)
    return page


# --- The files beside them ------------------------------------------------------------------------------------


def copy_sheets(app: Sphinx) -> None:
    """Where no page has changed, Sphinx does not copy the book's own."""
    for sheet in (Path(app.srcdir) / "_static").glob("*.css"):
        shutil.copy(sheet, Path(app.outdir) / "_static")


def write_theme_script(static: Path) -> None:
    """The theme measures every box of code as soon as a page stands; `page.mjs` measures those that a reader comes to.

    It also ships its icons, which are drawn from a web font, once more as a script of 1.5 MB, which goes.
    """
    (static / "scripts/fontawesome.js").write_text("// The icons come from a web font.\n", encoding="utf-8")
    script = measure_later((THEME / SCRIPT).read_text(encoding="utf-8"))
    (static / SCRIPT).write_text(script, encoding="utf-8")


def measure_later(script: str) -> str:
    start = script.find(MEASURES)
    end = script.find(".forEach", start)
    if start < 0 or "tabIndex" not in script[end : end + 60]:
        LOGGER.warning("book_weight: the theme's script no longer measures boxes of code as it did; see measure_later")
        return script
    return f"{script[:start]}querySelectorAll('none'){script[end:]}"


def offer_notebooks(app: Sphinx) -> None:
    """Behind the download button lies the notebook that stands beside the chapter; the theme offers the raw one."""
    for docname in app.env.found_docs:
        notebook = Path(app.env.doc2path(docname)).with_suffix(".ipynb")
        offered = Path(app.outdir) / "_sources" / f"{docname}.ipynb"
        if notebook.is_file() and offered.is_file():
            shutil.copyfile(notebook, offered)
