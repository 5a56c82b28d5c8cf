"""Two last touches to the written site.

- The notebook behind a chapter's download button is the one that lies beside the chapter, in which directives
  have become Markdown that Jupyter can show; the theme offers the raw one.
- The theme's icon script brings two thousand icons, 1.5 MB of a page that shows twenty. The others go.
"""

import re
import shutil
from pathlib import Path

import pydata_sphinx_theme
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
ICON_SCRIPT = "static/scripts/fontawesome.js"
# name:[width,height,[aliases and code points],"code point","path"], as the theme's script writes an icon.
ICON = re.compile(
    r'(?:"(?P<quoted>[a-z0-9-]+)"|(?P<plain>[a-z0-9]+))'
    r':\[\d+,\d+,\[(?P<aliases>[^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?'
)


def offer_notebooks(app: Sphinx) -> None:
    for docname in app.env.found_docs:
        notebook = Path(app.env.doc2path(docname)).with_suffix(".ipynb")
        offered = Path(app.outdir) / "_sources" / f"{docname}.ipynb"
        if notebook.is_file() and offered.is_file():
            shutil.copyfile(notebook, offered)


def keep_icons(script: str, wanted: set[str]) -> str:
    """Return the icon script with the wanted icons only, under their names or one of their aliases."""

    def keep(icon: re.Match) -> str:
        names = {icon["quoted"] or icon["plain"], *re.findall(r'"([a-z0-9-]+)"', icon["aliases"])}
        return icon[0] if names & wanted else ""

    return ICON.sub(keep, script)


def drop_unused_icons(app: Sphinx) -> None:
    site = Path(app.outdir)
    pages = [*site.rglob("*.html"), *(site / "_static").glob("*.js"), *(site / "_static/scripts").glob("*.js")]
    wanted: set[str] = set()
    for page in pages:
        if page.name != "fontawesome.js":
            wanted.update(re.findall(r"\bfa-([a-z0-9-]+)", page.read_text(encoding="utf-8")))
    theme = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme"
    whole = (theme / ICON_SCRIPT).read_text(encoding="utf-8")
    lean = keep_icons(whole, wanted)
    if len(lean) > len(whole) / 2:
        LOGGER.warning("finish_site: the theme writes its icons in another form now; all were kept.")
        return
    (site / "_static/scripts/fontawesome.js").write_text(lean, encoding="utf-8")


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        offer_notebooks(app)
        drop_unused_icons(app)


def setup(app: Sphinx) -> dict:
    # After the theme and Sphinx have copied their files.
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
