"""What `make book` recorded of the chapters that it executed; alone, print the processor time of their cells.

    python tools/notebooks/recorded.py        each chapter, and its cells above one second
    python tools/notebooks/recorded.py 02     only chapters whose name begins with 02

The seconds are those of the kernel's process: with two chapters at once, and whatever else the machine does, they
stay what they are. Compiling is part of them, so they are largest where no compiled program was kept (`make clean`).
"""

import functools
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat
from book import ROOT
from book_running.fresh_outputs import fingerprint
from book_running.inputs import changed
from chapter_cells import read_cells
from jupyter_cache import get_cache
from nbformat import NotebookNode

# The budget, in seconds of processor time. What takes longer is a recorded run: a folder in lab, with a card.
CELL, CHAPTER = 8, 40

INSTALL_CELLS = 1  # a notebook begins with a cell that installs the package, and its chapter does not
NOT_IN_NOTEBOOK = "remove-cell"  # the tag of cells that the chapter alone has

fingerprint_of = functools.cache(fingerprint)


class Recorded(NamedTuple):
    """The code cells of a chapter, as they were executed, and the processor time of each, in seconds."""

    cells: list[NotebookNode]
    seconds: list[float]


def recorded(chapter: Path) -> Recorded | None:
    """Return what was recorded of a chapter as it stands now, with all that it used as that stands now."""
    root = chapter.parents[1]
    folder = root / "_build" / ".jupyter_cache" / fingerprint_of(root)
    if not folder.is_dir() or not chapter.is_file():
        return None
    cache = get_cache(folder)
    try:
        record = cache.match_cache_notebook(read_cells(chapter.read_text(encoding="utf-8")))
    except KeyError:
        return None
    if changed(record.data.get("inputs"), root):
        return None
    return Recorded(cache.get_cache_bundle(record.pk).nb.cells, record.data["cell_seconds"])


def executed_cells(notebook: NotebookNode, chapter: Path) -> list[NotebookNode]:
    """Return a notebook's code cells as the book executed them in its chapter; none if it did not, as they are."""
    record = recorded(chapter)
    own = [cell for cell in notebook.cells if cell.cell_type == "code"]
    install, rest = own[:INSTALL_CELLS], own[INSTALL_CELLS:]
    cells = [cell for cell in record.cells if NOT_IN_NOTEBOOK not in cell.metadata.get("tags", [])] if record else []
    if [cell.source for cell in rest] != [cell.source for cell in cells]:
        return []
    return [nbformat.from_dict(cell | {"outputs": []}) for cell in install] + cells


def dearest(chapter: Recorded) -> list[str]:
    """Say what each cell cost, the dearest first."""
    numbered = enumerate(zip(chapter.cells, chapter.seconds, strict=True), start=1)
    ordered = sorted(numbered, key=lambda entry: -entry[1][1])
    return [
        f"{seconds:7.1f} s  cell {number}: {cell.source.splitlines()[0][:70]}" for number, (cell, seconds) in ordered
    ]


def main() -> None:
    """Print one line for each chapter, and below it its cells above one second."""
    total = 0.0
    for file in sorted((ROOT / "chapters").glob(f"{''.join(sys.argv[1:])}*.md")):
        if chapter := recorded(file):
            total += sum(chapter.seconds)
            over = sum(chapter.seconds) > CHAPTER or max(chapter.seconds) > CELL
            print(f"{sum(chapter.seconds):7.1f} s  {file.stem}{'  (over the budget)' if over else ''}")
            shown = [line for line in dearest(chapter) if float(line.split()[0]) > 1]
            print(*(f"         {line}" for line in shown), sep="\n", end="\n" if shown else "")
        else:
            print(f"      ? s  {file.stem}: run `make book`, which executes it")
    print(f"{total:7.1f} s  in all")


if __name__ == "__main__":
    main()
