"""The book's own scripts, as the site sends them: without comments and blanks, and with short names inside functions.

What lies under `widgets/` and here stays as it is written: notebooks take it from there, and the appendix on the
engine quotes it.
"""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

try:
    import minify
except ModuleNotFoundError:  # there is none for Apple's own processors
    minify = None

LOGGER = logging.getLogger(__name__)


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html" or minify is None:
        return
    for script in Path(app.outdir, "_static").rglob("*.mjs"):
        try:
            small = minify.string("application/javascript", script.read_text(encoding="utf-8"))
        except minify.MinifyError as error:
            LOGGER.warning("small_scripts: %s: %s", script.name, error)
        else:
            script.write_text(small, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    # After the extensions that copy scripts.
    app.connect("build-finished", finish, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
