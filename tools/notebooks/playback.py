"""Let nbval compare what `make book` has already executed, instead of executing it once more.

`chapters/conftest.py` makes this pytest's. nbval asks a kernel to run each cell and compares what comes back with what
the notebook holds. Where the book has recorded a chapter as it stands, the kernel is one that plays the record back;
everything else, the comparison and its messages, is nbval's. Where nothing is recorded, nbval executes.
"""

from collections.abc import Generator, Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbval.plugin import IPyNbFile
from recorded import executed_cells

# What cancels ends on either side of zero, as the machine rounds; with a sign or without, so do the blanks beside it.
SAME = {r"(?<![\w.])-(?=0(\.0*)?(?![\w.]))": "", r"[ \t]+": " ", r"\[ ": "["}


class Playback:
    """What nbval asks of a kernel, answered from cells that were executed before."""

    def __init__(self, cells: list[NotebookNode]) -> None:
        self._cells = iter(cells)
        self._messages: Iterator[dict] = iter(())

    def execute_cell_input(self, source: str, allow_stdin: bool | None = None) -> str:
        """Look for the next cell with this source: those before it were not asked for."""
        cell = next(cell for cell in self._cells if cell.source == source)
        contents = [*map(without_images, cell.outputs), {"output_type": "status", "execution_state": "idle"}]
        header = {"msg_id": source}
        self._messages = iter(
            [{"msg_type": each["output_type"], "parent_header": header, "content": each} for each in contents]
        )
        return source

    def get_message(self, stream: str, timeout: float | None = None) -> dict:
        """Return the next thing that the cell put out, at last that it is done."""
        return next(self._messages)

    def is_alive(self) -> bool:
        """Nothing can stop it."""
        return True

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """It has already run."""

    await_idle = await_reply

    def stop(self) -> None:
        """There is no process to end."""


def without_images(output: NotebookNode) -> NotebookNode:
    """Return an output without its pictures, as the notebook holds it: in the book they are vectors, in Jupyter not."""
    if "data" not in output:
        return output
    data = {kind: data for kind, data in output.data.items() if not kind.startswith("image/")}
    return nbformat.from_dict(output | {"data": data})


class Chapter(IPyNbFile):
    """A notebook whose cells are compared with what the book recorded, or executed where it did not."""

    def setup(self) -> None:
        """Begin as nbval does, with a kernel."""
        if cells := executed_cells(nbformat.read(self.path, as_version=4), self.path.with_suffix(".md")):
            self.kernel = Playback(cells)
            self.setup_sanitize_files()
        else:
            with pytest.MonkeyPatch.context() as patch:
                patch.delenv("XLA_FLAGS", raising=False)  # a kernel computes as the book's do, whatever tests may save
                super().setup()
        self.sanitize_patterns.update(SAME)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list, list]:
    """Put a `Chapter` in the place of nbval's own notebook."""
    found = yield
    return [Chapter.from_parent(parent, path=file_path) if isinstance(node, IPyNbFile) else node for node in found]


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say how many chapters will be executed, and how many were."""
    if not (config.option.nbval or config.option.nbval_lax):
        return None
    notebooks = config.rootpath.glob("chapters/*.ipynb")
    known = [bool(executed_cells(nbformat.read(file, as_version=4), file.with_suffix(".md"))) for file in notebooks]
    return f"chapters: {sum(known)} compared as `make book` executed them, {len(known) - sum(known)} executed now"
