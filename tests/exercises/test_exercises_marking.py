"""The notebooks of a class: each is run apart, and a broken one stops no other."""

import csv
import sys

import nbformat
import pytest

from plainformer.exercises import marking
from plainformer.exercises.__main__ import main

ASKED = """Write `my_scores`, and run `pf.exercises.check("scores", my_scores)`, then
`pf.exercises.check("attend", my_attend)`, `pf.exercises.check("weights", my_weights)` and
`pf.exercises.check("split_heads", my_split)`."""
RIGHT = "def my_scores(queries, keys):\n    return queries @ keys.T / queries.shape[1] ** 0.5\n"
NO_SCALE = "def my_scores(queries, keys):\n    return queries @ keys.T\n"
CHECK = 'pf.exercises.check("scores", my_scores)\n'


def notebook(file, *cells, folded=""):
    """A student's file: what was asked, then their cells, then the book's folded solution."""
    code = [nbformat.v4.new_code_cell(cell) for cell in ("import plainformer as pf", *cells)]
    if folded:
        code.append(nbformat.v4.new_code_cell(folded, metadata={"jupyter": {"source_hidden": True}}))
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(ASKED), *code]), file)
    return file


@pytest.fixture(scope="module")
def marks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    ada = notebook(
        folder / "ada.ipynb",
        NO_SCALE + CHECK,
        RIGHT + CHECK,
        "1 / 0",
        "def my_split(x, number):\n    return x\n",  # never checked by its author
        "def my_attend(queries, keys, values, mask=None):\n    raise OverflowError('too much')\n",
        "pf.exercises.check('attend', my_attend)",
        folded=RIGHT + CHECK + 'pf.exercises.check("weights", my_scores)',
    )
    ben = notebook(
        folder / "ben.ipynb",
        NO_SCALE + CHECK + 'pf.exercises.check("weights", my_weights)',
        "while True:\n    pass",
        'pf.exercises.check("attend", Ellipsis, "one too many")',
        folded=RIGHT + CHECK,
    )
    torn = folder / "torn.ipynb"
    torn.write_text("{", encoding="utf-8")
    return {file.stem: marking.mark(file, seconds=20) for file in (ada, ben, torn)}


def test_what_passed_once_is_passed_whatever_was_tried_before(marks):
    assert marks["ada"]["scores"] == "passed"


def test_mistake_is_named_and_the_rest_of_the_cell_runs(marks):
    assert marks["ben"]["scores"].startswith("mistake: your scores are not scaled")
    assert marks["ben"]["weights"].startswith("error: NameError: name 'my_weights'")


def test_function_that_raises_and_call_that_fails_are_errors(marks):
    assert "OverflowError" in marks["ada"]["attend"]
    assert marks["ada"]["attend"].startswith("error: ")
    assert marks["ben"]["attend"].startswith("error: TypeError")


def test_function_that_its_author_never_checked_is_checked(marks):
    assert marks["ada"]["split_heads"].startswith(("mistake: ", "error: "))
    assert marks["ben"]["split_heads"] == "not tried"


def test_folded_solutions_of_the_book_count_for_nobody(marks):
    assert marks["ada"]["weights"] == "not tried"


def test_table_has_a_row_for_each_even_for_one_that_cannot_be_read(marks):
    head, *rows = marking.as_table(marks)
    assert head == ["notebook", "scores", "attend", "weights", "split_heads", "passed of 4"]
    assert [row[0] for row in rows] == ["ada", "ben", "torn"]
    assert [row[-1] for row in rows] == ["1", "0", "0"]
    assert all(cell.startswith("error: this is no notebook") for cell in rows[2][1:-1])


def test_what_students_write_is_text_in_both_tables():
    rows = [["notebook"], ["=HYPERLINK(1)"], ["a|b\n<img>*"]]
    assert list(csv.reader(marking.in_csv(rows).splitlines(keepends=True)))[1] == ["'=HYPERLINK(1)"]
    assert marking.in_markdown(rows).splitlines()[3] == r"| a\|b \<img\>\* |"


def test_process_that_ends_is_told_and_what_it_had_passed_stays(tmp_path):
    file = notebook(tmp_path / "cy.ipynb", RIGHT + CHECK, "import os\nos._exit(1)", "1 + 1")
    marks = marking.mark(file, seconds=60)
    assert marks["scores"] == "passed"
    assert marks["attend"].startswith("error: the notebook could not be run to its end")


def test_command_writes_a_table_and_refuses_other_kinds_of_file(tmp_path, monkeypatch):
    (tmp_path / "no.ipynb").write_text("", encoding="utf-8")

    def command(to):
        monkeypatch.setattr(sys, "argv", ["exercises", str(tmp_path / "no.ipynb"), "--to", str(tmp_path / to)])
        return main()

    assert command("marks.csv") == 0
    lines = (tmp_path / "marks.csv").read_text("utf-8").splitlines()
    assert lines == ["notebook,passed of 0", f"{tmp_path / 'no.ipynb'},0"]
    with pytest.raises(SystemExit):
        command("marks.xlsx")
