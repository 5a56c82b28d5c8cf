"""The row below an exercise of the site, and the Python that it runs."""

import hashlib
import html
import json
import re
import zipfile
from pathlib import Path

import pytest
from book_weight import browser_python
from book_weight.browser_python import BrowserPython
from book_weight.exercise_rows import with_rows

PYTHON = BrowserPython(
    "_static/python/0123/", 9_526_150, {"scores": ["queries", "keys"], "weights": ["queries", "mask"]}
)
EXERCISE = (
    '<div class="exercise admonition" id="ex-{id}">\n'
    '<p class="admonition-title"><span class="caption-number">Exercise {number} </span> (★ Yours)</p>\n'
    '<section id="exercise-content">\n<p>{text}</p>\n</section>\n</div>\n'
)
CHECK = "<code>exercises.check(&quot;{0}&quot;,</code> <code>my_{0})</code>"
CELL = '<div class="cell docutils container">x</div>\n'
COLAB = '<a href="https://colab.research.google.com/github/o/n/blob/main/chapters/02_a.ipynb" target="_blank">'


@pytest.fixture
def rows(tmp_path):
    """A function that puts rows into a page with these exercises, twice as a rebuild would, and returns the rows."""
    cells = [
        {"id": "first", "source": ["see Exercise 2.1\n"]},
        {"id": "second", "source": ["**Exercise 2.1 (★ Yours).** Write", "\n**Exercise 2.10 (★★ Yours).**"]},
    ]
    notebook = tmp_path / "02_a.ipynb"
    notebook.write_text(json.dumps({"cells": cells}), encoding="utf-8")

    def put(*exercises: str, python: BrowserPython | None = PYTHON) -> list[str]:
        page = f'<html data-content_root="../"><head></head>{COLAB}{"".join(exercises)}</html>'
        once = with_rows(page, notebook, python)
        assert with_rows(once, notebook, python) == once
        assert once.count('src="../_static/exercises.mjs"') == 1
        return re.findall(r'<div class="exercise-row".*?</div>\n(?=</div>)', once)

    return put


def exercise(text: str, number: str = "2.1") -> str:
    return EXERCISE.format(id=number, number=number, text=text)


def test_an_exercise_of_arrays_can_be_written_in_the_page(rows):
    (row,) = rows(exercise(CHECK.format("scores") + " and " + CHECK.format("weights")))
    checks = json.loads(html.unescape(re.search(r'data-checks="([^"]+)"', row)[1]))
    assert checks == {"scores": ["my_scores", "queries", "keys"], "weights": ["my_weights", "queries", "mask"]}
    assert 'data-python="../_static/python/0123/" data-bytes="9526150"' in row
    assert "fetches Python once, 10 MB" in row
    assert "02_a.ipynb#scrollTo=second" in row


@pytest.mark.parametrize("python", [None, PYTHON])
def test_what_a_browser_cannot_check_leads_to_its_cell_in_colab(rows, python):
    name = "encode" if python else "scores"
    (row,) = rows(exercise(CHECK.format(name), "2.10"), python=python)
    assert "<button" not in row
    assert "02_a.ipynb#scrollTo=second" in row
    assert 'type="checkbox"' in row


def test_an_exercise_without_code_has_a_box_alone(rows):
    pencil, code = rows(exercise("By hand."), exercise("Try it.", "2.10"), CELL)
    assert "<a " not in pencil
    assert 'type="checkbox"' in pencil
    assert "Do it in Colab" in code


# --- Python --------------------------------------------------------------------------------------------------------


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A source with small files in the place of Pyodide's, and their checksums."""
    kept = tmp_path / "build" / "python"
    kept.mkdir(parents=True)
    for name in browser_python.PUBLISHED:
        (kept / name).write_bytes(name.encode())
    with zipfile.ZipFile(kept / browser_python.NUMPY, "w") as wheel:
        for name in ("numpy/a.py", "numpy/tests/test_a.py", "numpy/a.pyi", "numpy-2.dist-info/LICENSE.txt"):
            wheel.writestr(name, name)
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in kept.iterdir()}
    monkeypatch.setattr(browser_python, "PUBLISHED", sums)
    (tmp_path / "src").symlink_to(Path(__file__).parents[2] / "src")
    return tmp_path


def test_what_is_packed_is_what_the_exercises_need(published):
    python = browser_python.packed(published, published / "site")
    folder = published / "site" / python.folder
    assert python.size == sum(file.stat().st_size for file in folder.iterdir())
    with zipfile.ZipFile(folder / "numpy.zip") as numpy:
        assert numpy.namelist() == ["numpy/a.py", "numpy-2.dist-info/LICENSE.txt"]
    with zipfile.ZipFile(folder / "plainformer.zip") as package:
        for name in package.namelist():
            assert package.read(name) == (published / "src" / name).read_bytes()
    assert len(python.arguments) > 60
    assert python.arguments["attend"] == ["queries", "keys", "values", "mask"]
    assert "encode" not in python.arguments
    assert browser_python.packed(published, published / "site") == python


def test_a_changed_file_is_refused(published):
    (published / "build/python/pyodide.mjs").write_text("other")
    with pytest.raises(
        ValueError, match=r"pyodide.mjs has the checksum \w+; expected \w+\. Delete it and build again\."
    ):
        browser_python.packed(published, published / "site")


def test_without_a_network_the_site_is_built_and_says_so(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(browser_python, "CARRIER", "./no-such-package.whl")
    monkeypatch.setattr(browser_python.LOGGER, "info", said.append)
    assert browser_python.packed(tmp_path, tmp_path / "site") is None
    assert "lead to Colab only" in said[0]
