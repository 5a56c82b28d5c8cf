"""Keep executed chapters only as long as what they used is what it was.

The cache of executed notebooks knows a notebook by its cells alone: after a change in the package it would go on
serving the old outputs. So beside each chapter it keeps the modules, models and records that its kernel asked for
(`inputs.py`), and a chapter is executed again when one of them has changed. What every chapter depends on, Python, the
lock and the style of plots, names the folder of the cache: when the name changes, the old folder goes.

What the cache lacks is executed before Sphinx reads its pages, two chapters at a time: one alone leaves a core idle
while it compiles. Beside what its cells printed, the cache keeps the seconds of processor time that each of them took.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psutil
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract, ProjectNb
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from .inputs import PACKAGE, changed, used

LOGGER = logging.getLogger(__name__)

EXECUTED_WITH = ("requirements.txt", "requirements-data.txt", "chapters/matplotlibrc")
WATCH = Path(__file__).with_name("watch.py")


def fingerprint(root: Path) -> str:
    """Return a short hash of what all chapters depend on: the lock, the style of plots and the Python version."""
    digest = hashlib.sha256(f"Python {sys.version_info[:2]}".encode())
    for file in (root / name for name in EXECUTED_WITH):
        digest.update(hashlib.sha256(file.read_bytes()).digest() if file.is_file() else b"none")
    return digest.hexdigest()[:16]


def choose_cache(app: Sphinx, config: Config) -> None:
    caches = Path(app.outdir).parent / ".jupyter_cache"
    current = caches / fingerprint(Path(app.srcdir))
    for old in caches.glob("*"):
        if old.is_dir() and old != current:
            shutil.rmtree(old)
    config.nb_execution_cache_path = str(current)


class Executed(NamedTuple):
    """What executing a notebook took: seconds of processor time of each code cell; files with their hashes."""

    seconds: list[float]
    inputs: dict[str, str]


def run(notebook: NotebookNode, folder: Path, timeout: int) -> Executed:
    """Execute a notebook of the book, in its folder, in a fresh kernel.

    Only the kernel's own process counts, so that no second depends on what else the machine has to do.
    """
    resources = {"metadata": {"path": str(folder)}}
    # Compiled programs without checks at run time: JAX keeps none that calls back.
    own = {"EQX_ON_ERROR": "off"}
    watch = [f"--IPKernelApp.exec_files={WATCH}"]
    client = NotebookClient(notebook, timeout=timeout, record_timing=False, resources=resources, extra_arguments=watch)
    seconds = {number: 0.0 for number, cell in enumerate(notebook.cells) if cell.cell_type == "code"}

    def spent() -> float:
        times = psutil.Process(client.km.provisioner.pid).cpu_times()  # type: ignore[union-attr]
        return times.user + times.system

    def begin(cell_index: int, **_: object) -> None:
        seconds[cell_index] = -spent()

    def end(cell_index: int, **_: object) -> None:
        seconds[cell_index] += spent()

    client.on_cell_execute, client.on_cell_executed = begin, end
    with tempfile.TemporaryDirectory() as place:
        notes, root = Path(place, "notes"), folder.resolve().parent
        client.execute(env=os.environ | own | {"BOOK_WATCH": "\n".join(map(str, (notes, root, PACKAGE)))})
        return Executed(list(seconds.values()), used(notes, root))


def forget_changed(cache: JupyterCacheAbstract, root: Path) -> None:
    """Take from the cache what was executed with something that is no longer what it was."""
    for record in cache.list_cache_records():
        if different := changed(record.data.get("inputs"), root):
            LOGGER.info("%s is executed again, since %s changed", Path(record.uri).name, different[0])
            cache.remove_cache(record.pk)


def execute(app: Sphinx) -> list[str]:
    """Execute what is not in the cache; name those pages. A chapter that fails is left to Sphinx, which tells of it."""
    if app.config.nb_execution_mode != "cache":
        return []
    root = Path(app.srcdir).resolve()
    cache = get_cache(app.config.nb_execution_cache_path)
    forget_changed(cache, root)
    chapters = sorted(root.glob("chapters/*.md"), key=lambda file: -file.stat().st_size)
    for chapter in chapters:
        cache.add_nb_to_project(str(chapter), read_data={"name": "myst_nb_md", "type": "plugin"})
    unexecuted = cache.list_unexecuted(filter_uris=list(map(str, chapters)))  # a chapter that is gone has a record, too
    waiting = [cache.get_project_notebook(record.pk) for record in unexecuted]

    def attempt(chapter: ProjectNb) -> Executed | None:
        try:
            return run(chapter.nb, Path(chapter.uri).parent, app.config.nb_execution_timeout)
        except (CellExecutionError, CellTimeoutError):
            return None

    with ThreadPoolExecutor(2) as pool:
        for chapter, executed in zip(waiting, pool.map(attempt, waiting), strict=True):
            if executed:
                seconds = sum(executed.seconds)
                LOGGER.info("executed %s in %.0f s of processor time", Path(chapter.uri).name, seconds)
                data = {"execution_seconds": seconds, "cell_seconds": executed.seconds, "inputs": executed.inputs}
                cache.cache_notebook_bundle(
                    CacheBundleIn(chapter.nb, chapter.uri, data=data), check_validity=False, overwrite=True
                )
    return [f"chapters/{Path(chapter.uri).stem}" for chapter in waiting]


def execute_and_read_again(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """Execute what is not in the cache, and have Sphinx read those pages again, also if their text is as it was."""
    return [name for name in execute(app) if name in env.found_docs]
