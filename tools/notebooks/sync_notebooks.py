"""Write, beside each chapter, the executed notebook that Colab, Binder and nbval run.

    python tools/notebooks/sync_notebooks.py              all chapters whose notebook is not what they give now
    python tools/notebooks/sync_notebooks.py depth        only those whose name contains this
    python tools/notebooks/sync_notebooks.py --check      only compare with what the chapters give

The chapter, `chapters/stem.md`, is the only source; never edit the notebook. What its code printed is taken from the
book where `make book` has executed the chapter as it stands; where it has not, the notebook is executed.
"""

import argparse
import hashlib
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path

import nbformat
from book import ROOT, Book
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from recorded import executed_cells

CELL_TIMEOUT = 600
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def convert(book: Book, name: str) -> NotebookNode:
    """Return a chapter as a notebook that is not yet executed; raise `ValueError` if Sphinx complains of it."""
    if complaints := book.complaints(name):
        raise ValueError("\n".join(complaints))
    if name not in book.built.cells:
        raise ValueError("_toc.yml does not list it")
    cells = book.built.cells[name]
    name_cells(cells)
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA)


def name_cells(cells: list[NotebookNode]) -> None:
    """Give each cell an id that depends on its content alone, so that an insertion changes no other id."""
    copies: Counter[str] = Counter()
    for cell in cells:
        text = f"{cell.cell_type}\n{cell.source}"
        cell["id"] = hashlib.sha256(f"{text}\n{copies[text]}".encode()).hexdigest()[:8]
        copies[text] += 1


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Run every cell in a fresh kernel, as nbval will, and clean the outputs."""
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        # The kernel remarks at every start that it listens on this machine; that is meant.
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise ValueError(f"{_last_run(notebook)} failed:\n{error}") from error
    notebook.metadata = nbformat.from_dict(METADATA)
    clean_cells(notebook)


def clean_cells(notebook: NotebookNode) -> None:
    """Clean what every cell put out; raise `ValueError` with the cell where that cannot be kept."""
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)
            try:
                cell.outputs = clean(cell.outputs)
            except ValueError as error:
                raise ValueError(f"cell {number}, {cell.source[:70]!r}: {error}") from error


def _last_run(notebook: NotebookNode) -> str:
    """Name the cell at which execution stopped."""
    number, cell = max(
        ((number, cell) for number, cell in enumerate(notebook.cells, start=1) if cell.cell_type == "code"),
        key=lambda pair: pair[1].execution_count or 0,
    )
    return f"cell {number}, {cell.source.splitlines()[0][:70]!r},"


def clean(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Strip images, join what one stream wrote in pieces, and refuse what would differ in the next run."""
    kept: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                raise ValueError(f"it wrote to standard error, which nbval would refuse: {output.text.strip()[:300]}")
            if kept and kept[-1].output_type == "stream":
                kept[-1].text += output.text
                continue
        elif output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            output.data = nbformat.from_dict({kind: data for kind, data in output.data.items() if "image/" not in kind})
            output.metadata = nbformat.from_dict({})
        kept.append(output)
    for output in kept:
        if found := re.search(rf"\bat 0x[0-9a-f]{{6,}}|{re.escape(str(ROOT))}\S*", str(dict(output))):
            raise ValueError(f"its output names {found[0]!r}, which is different elsewhere: print something else")
    return kept


def take_outputs(notebook: NotebookNode, executed: list[NotebookNode]) -> None:
    """Give the code cells what the book's own cells put out, cleaned."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, (cell, done) in enumerate(zip(cells, executed, strict=True), start=1):
        cell.outputs, cell.execution_count = [nbformat.from_dict(output) for output in done.outputs], number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    clean_cells(notebook)


def write(notebook: NotebookNode, file: Path) -> None:
    """Write under another name first, so that a crash leaves no half notebook."""
    nbformat.validate(notebook)
    part = file.with_name(file.name + ".part")
    part.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    part.replace(file)


def drift(book: Book, name: str) -> str:
    """Say how a chapter's notebook differs from what the chapter gives now; empty if it does not."""
    file = book.root / f"{name}.ipynb"
    if not file.is_file():
        return f"{name}.ipynb is missing: run `make notebooks`"
    expected = convert(book, name).cells
    stored = nbformat.read(file, as_version=4).cells
    advice = f"{name}.ipynb is not what {name}.md gives now: run `make notebooks` and commit both"
    for number, (new, old) in enumerate(zip(expected, stored, strict=False), start=1):
        if (new.id, new.source, new.metadata) != (old.id, old.source, old.metadata):
            first = next((line for line in new.source.splitlines() if line not in old.source), "")
            return f"{advice} (first difference: cell {number}{f', {first[:70]!r}' if first else ''})"
    if len(expected) != len(stored):
        return f"{advice} (it has {len(stored)} cells; now there are {len(expected)})"
    return ""


def synchronise(book: Book, name: str) -> None:
    """Convert one chapter, with what the book or else the notebook's own kernel printed, and write what changed."""
    start = time.perf_counter()
    notebook, file = convert(book, name), book.root / f"{name}.ipynb"
    if executed := executed_cells(notebook, book.root / f"{name}.md"):
        take_outputs(notebook, executed)
    else:
        print(f"{name} is executed, since `make book` has not done it ...", end=" ", flush=True)
        execute(notebook, book.root / "chapters")
        print(f"{len(notebook.cells)} cells, {time.perf_counter() - start:.0f} s", flush=True)
    if not file.is_file() or file.read_text("utf-8") != nbformat.writes(notebook) + "\n":
        write(notebook, file)
        print(f"{name}.ipynb is written", flush=True)


def main() -> int:
    """Run the command that the module's docstring describes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="*", help="words in chapter names, such as depth")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    book = Book()
    names = [name for name in book.chapters if any(word in Path(name).name for word in options.chapters or [""])]
    if not names:
        parser.error(f"no chapter's name contains {' or '.join(options.chapters)}; expected a word such as depth.")
    failed = False
    for name in names:
        try:
            if options.check:
                message = drift(book, name)
                failed |= bool(message)
                print(message, end="\n" if message else "", file=sys.stderr)
            else:
                synchronise(book, name)
        except ValueError as error:
            failed = True
            print(f"\n{name}: {error}", "" if options.check else "\nIts notebook was not written.", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
