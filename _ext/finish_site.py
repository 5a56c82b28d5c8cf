"""Three last touches to the written site.

- The notebook behind a chapter's download button is the one that lies beside the chapter, in which directives
  have become Markdown that Jupyter can show; the theme offers the raw one.
- The theme draws its icons from a web font, and ships the same two thousand icons once more as a script of 1.5 MB.
  The script goes.
- The bibliography is given roles that assistive technology no longer supports, or not in that place. They go.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx


def offer_notebooks(app: Sphinx) -> None:
    for docname in app.env.found_docs:
        notebook = Path(app.env.doc2path(docname)).with_suffix(".ipynb")
        offered = Path(app.outdir) / "_sources" / f"{docname}.ipynb"
        if notebook.is_file() and offered.is_file():
            shutil.copyfile(notebook, offered)


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        offer_notebooks(app)
        site = Path(app.outdir)
        (site / "_static/scripts/fontawesome.js").write_text("// The icons come from a web font.\n", encoding="utf-8")
        bibliography = site / "appendix/bibliography.html"
        page = bibliography.read_text(encoding="utf-8")
        for role in (' role="doc-biblioentry"', ' role="list" class="citation-list"'):
            page = page.replace(role, "")
        bibliography.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    # After the theme and Sphinx have copied their files.
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
