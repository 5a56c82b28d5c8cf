"""Keep executed chapters only as long as the code that they ran is the code that stands.

The cache of executed notebooks knows a notebook by its cells alone: after a change in the package it would
go on serving the old outputs. So the cache lies in a folder named after everything else that an output
depends on. When the name changes, the old folder goes, and Sphinx reads every page again because one of its
settings changed. A chapter that changes is executed alone.

What the cache lacks is executed before Sphinx reads its pages, two chapters at a time: one alone leaves a core idle
while it compiles.
"""

import hashlib
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, ProjectNb
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

EXECUTED_WITH = ("src/plainformer", "models", "requirements.txt", "chapters/matplotlibrc")
IGNORED = {"__pycache__"}


def fingerprint(root: Path) -> str:
    """Return a short hash of the package, its weights, the lock, the style of plots and the Python version."""
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


def execute(app: Sphinx) -> None:
    """Execute what is not in the cache. A chapter that fails is left to Sphinx, which tells of it."""
    if app.config.nb_execution_mode != "cache":
        return
    cache = get_cache(app.config.nb_execution_cache_path)
    chapters = sorted(Path(app.srcdir).glob("chapters/*_*.md"), key=lambda file: -file.stat().st_size)
    for chapter in chapters:
        cache.add_nb_to_project(str(chapter), read_data={"name": "myst_nb_md", "type": "plugin"})
    unexecuted = cache.list_unexecuted(filter_uris=list(map(str, chapters)))  # a chapter that is gone has a record, too
    waiting = [cache.get_project_notebook(record.pk) for record in unexecuted]

    def run(chapter: ProjectNb) -> ExecutionResult:
        folder, seconds = str(Path(chapter.uri).parent), app.config.nb_execution_timeout
        return single_nb_execution(chapter.nb, cwd=folder, timeout=seconds, allow_errors=False)

    with ThreadPoolExecutor(2) as pool:
        for chapter, result in zip(waiting, pool.map(run, waiting), strict=True):
            if result.err is None:
                LOGGER.info("executed %s in %.0f s", Path(chapter.uri).name, result.time)
                notebook = CacheBundleIn(chapter.nb, chapter.uri, data={"execution_seconds": result.time})
                cache.cache_notebook_bundle(notebook, check_validity=False, overwrite=True)
