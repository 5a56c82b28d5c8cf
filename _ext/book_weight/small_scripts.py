"""The book's own scripts, as the site sends them: without comments and blanks, and with short names inside functions.

What lies under `widgets/` and here stays as it is written: notebooks take it from there, and the appendix on the
engine quotes it.
"""

from pathlib import Path

from sphinx.util import logging

try:
    import minify
except ModuleNotFoundError:  # there is none for Apple's own processors
    minify = None

LOGGER = logging.getLogger(__name__)


def make_small(static: Path) -> None:
    if minify is None:
        return
    for script in static.rglob("*.mjs"):
        try:
            small = minify.string("application/javascript", script.read_text(encoding="utf-8"))
        except minify.MinifyError as error:
            LOGGER.warning("small_scripts: %s: %s", script.name, error)
        else:
            script.write_text(small, encoding="utf-8")
