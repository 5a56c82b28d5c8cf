"""Keep executed chapters only as long as the code that they ran is the code that stands.

The cache of executed notebooks knows a notebook by its cells alone: after a change in the package it would
go on serving the old outputs. So the cache lies in a folder named after everything else that an output
depends on. When the name changes, the old folder goes, and Sphinx reads every page again because one of its
settings changed. A chapter that changes is executed alone.
"""

import hashlib
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

EXECUTED_WITH = ("src/plainformer", "models", "requirements.txt")
IGNORED = {"__pycache__"}


def fingerprint(root: Path) -> str:
    """Return a short hash of the package, its weights, the lock and the Python version."""
    digest = hashlib.sha256(f"Python {sys.version_info[:2]}".encode())
    for name in EXECUTED_WITH:
        start = root / name
        files = [start] if start.is_file() else sorted(start.rglob("*"))
        for file in files:
            if file.is_file() and not IGNORED.intersection(file.parts):
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:16]


def choose_cache(app: Sphinx, config: Config) -> None:
    caches = Path(app.outdir).parent / ".jupyter_cache"
    current = caches / fingerprint(Path(app.srcdir))
    for old in caches.glob("*"):
        if old.is_dir() and old != current:
            shutil.rmtree(old)
    config.nb_execution_cache_path = str(current)


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", choose_cache)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
