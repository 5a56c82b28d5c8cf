"""Let Sphinx read the book: the pages with their numbers, labels and citations, and the chapters as notebooks."""

import io
import re
import sys
import warnings
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from notebook_builder import NotebookBuilder

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "_ext"))

# What the pages are made of. What makes a site of them is left out, and with it the page of the API.
EXTENSIONS = [
    "myst_nb",
    "sphinx_external_toc",
    "sphinx_book_theme",
    "sphinx_design",
    "sphinx_exercise",
    "sphinx_proof",
    "sphinxcontrib.bibtex",
    "book_meaning",
    "notebook_builder",
]


class Book:
    """The book at `root`, with the site's own configuration."""

    def __init__(self, root: Path = ROOT) -> None:
        from book_meaning.addresses import site_address
        from book_meaning.order import chapters

        self.root = root
        config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
        self.repository: str = config["repository"]["url"].rstrip("/")
        self.site: str = site_address(self.repository)
        self.chapters = list(chapters(root))

    @cached_property
    def built(self) -> "NotebookBuilder":
        """The builder after its work, which takes some seconds; no cell is executed."""
        from jupyter_book.config import get_final_config
        from sphinx.application import Sphinx
        from sphinx.util.docutils import docutils_namespace, patch_docutils

        config, _ = get_final_config(
            user_yaml=self.root / "_config.yml", sourcedir=self.root, cli_config={"latex_individualpages": False}
        )
        config["extensions"] = EXTENSIONS
        config["nb_execution_mode"] = "off"
        # One of its own: extensions add theirs to Sphinx's, and the next application of this process would find them.
        config["source_suffix"] = {".rst": "restructuredtext"}
        config["nb_custom_formats"] = {".md": ["chapter_cells.read_cells", {}]}
        config["nb_mime_priority_overrides"] = [("notebooks", "image/svg+xml", 1)]
        log = io.StringIO()
        with warnings.catch_warnings(), TemporaryDirectory() as folder, patch_docutils(), docutils_namespace():
            warnings.simplefilter("ignore")  # what Sphinx's extensions do is their own business, in tests too
            places = (str(self.root), None, f"{folder}/out", f"{folder}/doctrees")
            app = Sphinx(*places, "notebooks", config, status=None, warning=log)
            app.build()
        builder: NotebookBuilder = app.builder  # type: ignore[assignment]
        builder.log = re.sub(r"\x1b\[[\d;]*m", "", log.getvalue())
        return builder

    def complaints(self, name: str) -> list[str]:
        """Return what Sphinx or the builder complain of on a page, with the line."""
        return re.findall(rf"^\S*{re.escape(name)}\.\w+:.*$", self.built.log, re.MULTILINE)
