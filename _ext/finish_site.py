"""Four last touches to the written site.

- The notebook behind a chapter's download button is the one that lies beside the chapter, in which directives
  have become Markdown that Jupyter can show; the theme offers the raw one.
- The theme draws its icons from a web font, and ships the same two thousand icons once more as a script of 1.5 MB.
  The script goes.
- A script of the theme measures every box of code as soon as the page stands, which has all of it laid out at once.
  `page.mjs` measures the boxes that a reader comes to.
- The bibliography is given roles that assistive technology no longer supports, or not in that place. They go.
"""

import shutil
from pathlib import Path

from icons import THEME
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
SCRIPT = "scripts/pydata-sphinx-theme.js"
MEASURES = 'querySelectorAll(["pre",'  # where it looks for boxes that scroll


def offer_notebooks(app: Sphinx) -> None:
    for docname in app.env.found_docs:
        notebook = Path(app.env.doc2path(docname)).with_suffix(".ipynb")
        offered = Path(app.outdir) / "_sources" / f"{docname}.ipynb"
        if notebook.is_file() and offered.is_file():
            shutil.copyfile(notebook, offered)


def measure_later(script: str) -> str:
    start = script.find(MEASURES)
    end = script.find(".forEach", start)
    if start < 0 or "tabIndex" not in script[end : end + 60]:
        LOGGER.warning("finish_site: the theme's script no longer measures boxes of code as it did; see measure_later")
        return script
    return f"{script[:start]}querySelectorAll('none'){script[end:]}"


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        offer_notebooks(app)
        site = Path(app.outdir)
        (site / "_static/scripts/fontawesome.js").write_text("// The icons come from a web font.\n", encoding="utf-8")
        script = measure_later((THEME / SCRIPT).read_text(encoding="utf-8"))
        (site / "_static" / SCRIPT).write_text(script, encoding="utf-8")
        bibliography = site / "appendix/bibliography.html"
        page = bibliography.read_text(encoding="utf-8")
        for role in (' role="doc-biblioentry"', ' role="list" class="citation-list"'):
            page = page.replace(role, "")
        bibliography.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    # After the theme and Sphinx have copied their files.
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
