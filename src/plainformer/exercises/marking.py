"""A class's notebooks, marked: each is run in a process of its own, and its answers are told from each other."""

import asyncio
import csv
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from plainformer import exercises
from plainformer.exercises.check import ExerciseError
from plainformer.exercises.registry import exercise_modules

NOT_TRIED, PASSED = "not tried", "passed"
_CALL = re.compile(r"\bcheck\(\s*[\"'](\w+)[\"']\s*,\s*(\w+)")
_check = exercises.check


def mark(notebook: Path, seconds: int = 60) -> dict[str, str]:
    """Run a student's notebook; say of each exercise that it names `passed`, the mistake, `error: …` or `not tried`.

    An exercise counts as passed if any of its checks passed; otherwise its last one is told. Folded cells that call a
    check are the book's own solutions, and are left out.

    Args:
        notebook: the file. **The code in it is run with your rights**: do that in a container or on a machine without
            network and without anything of yours.
        seconds: how long a cell may take. One that takes longer is interrupted, and the next one runs. The notebook as
            a whole may take ten times as long.
    """
    try:
        cells = _cells(notebook)
    except Exception as error:  # whatever was handed in under this name
        return {"": f"error: this is no notebook that can be read ({type(error).__name__})"}
    cells = [cell for cell in cells if not _is_solution(cell)]
    named = _named(cell.source for cell in cells)
    theirs = [cell for cell in cells if cell.cell_type == "code"]
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found"
        found.touch()
        trouble = _run(theirs, named, found, notebook.parent, seconds)
        told = [json.loads(line) for line in found.read_text("utf-8").splitlines()]
    marks = {name: trouble or _error_at(name, theirs) for name in named}
    for name, complaint in told:
        if marks.get(name) != PASSED:
            marks[name] = _said(name, complaint) if complaint else PASSED
    return marks


def as_table(marks: dict[str, dict[str, str]]) -> list[list[str]]:
    """Return the rows of a table: a head, then a row for each student and a column for each exercise."""
    known = list(exercise_modules())
    names = list(dict.fromkeys(name for each in marks.values() for name in each if name in known))
    rows = []
    for student, each in marks.items():
        unreadable = each.get("", NOT_TRIED)
        rows.append([student, *(each.get(name, unreadable) for name in names), str(list(each.values()).count(PASSED))])
    return [["notebook", *names, f"passed of {len(names)}"], *rows]


def in_markdown(rows: list[list[str]]) -> str:
    """Return the table for reading. What a student wrote stands there as text, and is no markup."""
    told = [[re.sub(r"([\\`*_|<>\[\]])", r"\\\1", cell.replace("\n", " ")) for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in told]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def in_csv(rows: list[list[str]]) -> str:
    """Return the table for a spreadsheet, in which no name of a file is a formula."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [[f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell for cell in row] for row in rows]
    )
    return text.getvalue()


def _cells(notebook: Path) -> list[Any]:
    import nbformat

    return nbformat.read(notebook, as_version=4).cells


def _named(texts: Iterable[str]) -> dict[str, str]:
    """The exercises that a notebook names, each with the name of the function that answers it."""
    return {name: function for text in texts for name, function in _CALL.findall(text)}


def _is_solution(cell: Any) -> bool:
    folded = cell.metadata.get("jupyter", {}).get("source_hidden") or cell.metadata.get("cellView") == "form"
    return bool(folded and _CALL.search(cell.source))


def _run(cells: list[Any], named: dict[str, str], found: Path, folder: Path, seconds: int) -> str:
    """Execute the cells between two of ours; return what ended it all, or nothing."""
    import nbformat
    from nbclient import NotebookClient

    first = f"from plainformer.exercises import marking as _marking; _heard = _marking.Listener({str(found)!r})"
    last = f"_heard.try_the_rest({named!r}, globals())"
    ours = [nbformat.v4.new_code_cell(code) for code in (first, last)]
    whole = nbformat.v4.new_notebook(cells=[ours[0], *cells, ours[1]])
    client = NotebookClient(
        whole,
        timeout=seconds,
        kernel_name="python3",
        allow_errors=True,
        interrupt_on_timeout=True,
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        asyncio.run(asyncio.wait_for(client.async_execute(), 10 * seconds))
    except Exception as error:  # the process died, or did not heed the interruption
        return f"error: the notebook could not be run to its end ({type(error).__name__})"
    return ""


def _error_at(name: str, cells: list[Any]) -> str:
    """What is known of an exercise of which no check reported: the error of the cell that should have tried it."""
    for cell in cells:
        if name in _named([cell.source]):
            errors = [output for output in cell.get("outputs", []) if output.output_type == "error"]
            if errors:
                why = "it took too long" if errors[-1].ename == "KeyboardInterrupt" else errors[-1].evalue
                return f"error: {errors[-1].ename}: {why}"[:200]
    return NOT_TRIED


def _said(name: str, complaint: str) -> str:
    """The first line of a complaint, without the name of the exercise, and whether it names a mistake."""
    line = complaint.splitlines()[0].removeprefix(f"{name}: ")
    return f"error: {line}" if line.startswith("your function raised") else f"mistake: {line}"


# --- In the student's process -------------------------------------------------------------------------------


class Listener:
    """Takes the check's place: writes what it finds into a file, and lets the notebook go on after a wrong answer."""

    def __init__(self, found: str):
        self.found, self.tried = Path(found), set[str]()
        exercises.check = self

    def __call__(self, name: str, function: Callable) -> None:
        """Check, tell the student's page, and write it down."""
        complaint = ""
        try:
            _check(name, function)
        except ExerciseError as error:
            complaint = str(error)
            print(complaint)
        if name in exercise_modules():
            self.tried.add(name)
            with self.found.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, complaint]) + "\n")

    def try_the_rest(self, named: dict[str, str], answers: dict[str, Any]) -> None:
        """Check the functions that a student wrote without calling the check."""
        for name, function in named.items():
            if name not in self.tried and callable(answers.get(function)):
                self(name, answers[function])
