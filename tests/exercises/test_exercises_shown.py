"""What a notebook and a script show of an error: the message, and none of the package's lines."""

import re
import subprocess
import sys

import nbformat
import pytest
from exercise_checks import complaint
from nbclient import NotebookClient

CELLS = [
    "import plainformer as pf",
    """\
def mine(queries, keys):
    print('in my function')
    return queries @ keys.T
pf.exercises.check('scores', mine)""",
    """\
def mine(queries, keys):
    return queries @ missing
pf.exercises.check('scores', mine)""",
    "pf.exercises.check('scores', pf.scaled_scores)",
]


@pytest.fixture(scope="module")
def cells():
    """The outputs of these cells in a Jupyter kernel, which is IPython's as on Colab."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    options = {"allow_errors": True, "coalesce_streams": True, "timeout": 300}
    NotebookClient(notebook, kernel_name="python3", **options).execute()
    return [cell.outputs for cell in notebook.cells]


def test_notebook_shows_the_message_alone(cells):
    (error,) = [output for output in cells[1] if output.output_type == "error"]
    (shown,) = error.traceback
    assert shown.startswith(
        "ExerciseError: scores: your scores are not scaled: they are the bare dot products.\nWith\n"
    )
    assert "in my function" in cells[1][0].text
    (error,) = [output for output in cells[2] if output.output_type == "error"]
    (shown,) = error.traceback
    assert re.match(
        r"ExerciseError: scores: your function raised NameError on line 2 \(`return queries @ missing`\)", shown
    )
    assert cells[3][0].text == "scores: passed 3 checks on 5 queries, 7 keys\n"


def test_script_shows_its_own_line_and_the_message(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("\n".join(CELLS[:2]))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "in my function" in done.stdout
    shown = done.stderr.splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert re.fullmatch(r'  File ".*mine.py", line 5, in <module>', shown[1])
    assert shown[2] == "    pf.exercises.check('scores', mine)"
    # From Python 3.13 on, a line of ~ and ^ stands between.
    message = shown[4] if "~" in shown[3] else shown[3]
    assert message == "ExerciseError: scores: your scores are not scaled: they are the bare dot products."
    assert "plainformer/exercises" not in done.stderr


def test_other_errors_of_a_script_are_shown_as_ever(monkeypatch):
    """They go on to the hook that was there before; Python calls it with what nobody has caught."""
    shown = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    assert "is called as f(queries, keys)" in complaint("scores", len)
    error = ZeroDivisionError("division by zero")
    sys.excepthook(ZeroDivisionError, error, None)
    assert shown == [(ZeroDivisionError, error, None)]
