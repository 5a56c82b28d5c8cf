"""Keep executed chapters only as long as the code that they ran is the code that stands.

The cache of executed notebooks knows a notebook by its cells alone: after a change in the package it would
go on serving the old outputs. So the cache lies in a folder named after everything else that an output
depends on. When the name changes, the old folder goes, and Sphinx reads every page again because one of its
settings changed. A chapter that changes is executed alone.

What the cache lacks is executed before Sphinx reads its pages, two chapters at a time: one alone leaves a core idle
while it compiles. Beside what its cells printed, the cache keeps the seconds of processor time that each of them took.
"""

import hashlib
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, ProjectNb
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode
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


def run(notebook: NotebookNode, folder: Path, timeout: int) -> list[float]:
    """Execute a notebook in a fresh kernel; return the processor time of each code cell, in seconds.

    Only the kernel's own process counts, so that nothing depends on what else the machine has to do.
    """
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=timeout, record_timing=False, resources=resources)
    seconds = {number: 0.0 for number, cell in enumerate(notebook.cells) if cell.cell_type == "code"}

    def spent() -> float:
        times = psutil.Process(client.km.provisioner.pid).cpu_times()  # type: ignore[union-attr]
        return times.user + times.system

    def begin(cell_index: int, **_: object) -> None:
        seconds[cell_index] = -spent()

    def end(cell_index: int, **_: object) -> None:
        seconds[cell_index] += spent()

    client.on_cell_execute, client.on_cell_executed = begin, end
    client.execute()
    return list(seconds.values())


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

    def attempt(chapter: ProjectNb) -> list[float]:
        try:
            return run(chapter.nb, Path(chapter.uri).parent, app.config.nb_execution_timeout)
        except (CellExecutionError, CellTimeoutError):
            return []

    with ThreadPoolExecutor(2) as pool:
        for chapter, seconds in zip(waiting, pool.map(attempt, waiting), strict=True):
            if seconds:
                LOGGER.info("executed %s in %.0f s of processor time", Path(chapter.uri).name, sum(seconds))
                data = {"execution_seconds": sum(seconds), "cell_seconds": seconds}
                cache.cache_notebook_bundle(
                    CacheBundleIn(chapter.nb, chapter.uri, data=data), check_validity=False, overwrite=True
                )
