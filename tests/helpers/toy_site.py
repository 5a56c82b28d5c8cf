"""Sphinx builds a toy site within this process: to start another takes far longer than to build."""

import io
import re
import warnings
from pathlib import Path

from book import ROOT
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

# The extension asks the theme where the repository is; nothing else of a theme is needed, nor waited for.
THEME = "[theme]\ninherit = basic\nstylesheet = basic.css\n[options]\nrepository_url =\nrepository_branch = main\n"
CONF = f"""\
import sys
sys.path.insert(0, {str(ROOT / "_ext")!r})
extensions = ["myst_parser", "book_meaning"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
html_theme, html_theme_path = "plain", ["."]
html_theme_options = {{"repository_url": "https://github.com/owner/name"}}
numfig, numfig_secnum_depth = True, 1
"""


def write(root: Path, files: dict[str, str]) -> None:
    """Write the files of a toy site, with its configuration."""
    for name, text in {"conf.py": CONF, "plain/theme.conf": THEME, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def build(root: Path, builder: str = "html", parallel: int = 0) -> tuple[Sphinx, str]:
    """Build the site of a folder into its `_build`, and return the application and what Sphinx complained of."""
    said = io.StringIO()
    with warnings.catch_warnings(), patch_docutils(), docutils_namespace():
        warnings.simplefilter("ignore")  # what Sphinx's extensions do is their own business
        places = map(str, (root, root, root / "_build", root / "_build/.doctrees"))
        overrides = {"nitpicky": True, "source_suffix": {".rst": "restructuredtext"}}  # as in `Book`: one of its own
        options = {"confoverrides": overrides, "parallel": parallel}
        app = Sphinx(*places, builder, status=None, warning=said, **options)
        app.build()
    return app, re.sub(r"\x1b\[[\d;]*m", "", said.getvalue())  # without colours
