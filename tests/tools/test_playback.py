"""A chapter that the book has executed is compared, not executed again; a wrong number fails as with nbval."""

import contextlib
import gc
import io
import re
import shutil
from types import SimpleNamespace

import nbformat
import playback
import pytest
import recorded
import sync_notebooks
from book import ROOT
from book_running import fresh_outputs
from chapter_cells import read_cells
from nbformat.v4 import new_code_cell, new_notebook
from toy_book import HEADER

COUNT = 'print("seven times three:", 7 * 3)\nwith open("runs", "a") as file:\n    print(end="|", file=file)'
GUARD = 'print(7)\nassert 7 * 3 == int(open("../models/record.json").read())'
DRAW = "import matplotlib.pyplot as plt\nline = plt.plot([1, 2], [2, 1])"
RAISE = 'int("seven")'
CHAPTER = f"""{HEADER}
# A toy

```{{code-cell}} ipython3
{COUNT}
```

```{{code-cell}} ipython3
:tags: [remove-cell]
{GUARD}
```

```{{code-cell}} ipython3
{DRAW}
```

```{{code-cell}} ipython3
:tags: [raises-exception]
{RAISE}
```
"""

ONCE_FOR_THE_NOTEBOOK_AND_ONCE_FOR_THE_BOOK = 2

# Jupyter leaves the event loop of each thread to the garbage collector, and the cache its connection.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def write_notebook(root):
    """The notebook of the toy chapter, as `make notebooks` writes it."""
    cells = read_cells((root / "chapters/01_toy.md").read_text()).cells
    code = [cell for cell in cells if cell.cell_type == "code" and cell.source != GUARD]
    code = [new_code_cell(cell.source, metadata=cell.metadata) for cell in code]
    notebook = new_notebook(cells=[new_code_cell("import json"), *code], metadata=sync_notebooks.METADATA)
    sync_notebooks.name_cells(notebook.cells)
    sync_notebooks.execute(notebook, root / "chapters")
    sync_notebooks.write(notebook, root / "chapters/01_toy.ipynb")


def record(root):
    """Execute the chapter as `make book` does, with its pictures as vectors."""
    cache = root / "_build/.jupyter_cache" / fresh_outputs.fingerprint(root)
    settings = {"nb_execution_mode": "cache", "nb_execution_cache_path": str(cache), "nb_execution_timeout": 60}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(root / "ipython"))
        fresh_outputs.execute(SimpleNamespace(srcdir=root, config=SimpleNamespace(**settings)))


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A folder with one chapter, its notebook and what the book recorded of it."""
    root = tmp_path_factory.mktemp("executed")
    for folder in ("chapters", "ipython/profile_default", "models"):
        (root / folder).mkdir(parents=True)
    vectors = 'c.InlineBackend.figure_formats = ["svg"]'
    (root / "ipython/profile_default/ipython_kernel_config.py").write_text(vectors)
    (root / "chapters/01_toy.md").write_text(CHAPTER)
    (root / "models/record.json").write_text("21")
    shutil.copy(ROOT / "chapters/conftest.py", root / "chapters")
    (root / "pytest.ini").write_text("[pytest]\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
        write_notebook(root)
        record(root)
    gc.collect()
    return root


@pytest.fixture
def book(executed, tmp_path, monkeypatch):
    """A copy of that folder, for one test to change."""
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    recorded.fingerprint_of.cache_clear()
    return shutil.copytree(executed, tmp_path / "book")


def validate(book, *options) -> SimpleNamespace:
    """Run nbval over the chapters: whether they passed, how often they have been executed by now, what was said."""
    recorded.fingerprint_of.cache_clear()
    settings = ["--rootdir", book, "-c", book / "pytest.ini", "--import-mode=importlib", "-p", "no:cacheprovider"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main([*map(str, settings), "--color=no", "--nbval", *options, str(book / "chapters")])
    gc.collect()
    runs = len((book / "chapters/runs").read_text())
    return SimpleNamespace(passed=code == 0, runs=runs, text=said.getvalue())


def test_what_the_book_executed_is_not_executed_again(book):
    done = validate(book)
    assert done.passed, done.text
    assert "4 passed" in done.text
    assert "chapters: 1 compared as `make book` executed them, 0 executed now" in done.text
    assert done.runs == ONCE_FOR_THE_NOTEBOOK_AND_ONCE_FOR_THE_BOOK
    assert "1 passed, 3 deselected" in validate(book, "-k", "Cell and 3").text


def test_wrong_stored_outputs_fail_as_with_nbval(book):
    notebook = book / "chapters/01_toy.ipynb"
    text = notebook.read_text()
    wrong = {"seven times three: 21": "seven times three: 22", "base 10: 'seven'": "base 10: 'eight'"}
    for old, new in wrong.items():
        assert old in text
        text = text.replace(old, new)
    notebook.write_text(text)
    compared = validate(book)
    shutil.rmtree(book / "_build")
    executed = validate(book)
    assert (compared.runs, executed.runs) == (2, 3)
    failures = r"(?s)(?<=\nNotebook cell execution failed).*?(?=\n____|\n=====)"
    assert re.findall(failures, compared.text) == re.findall(failures, executed.text)
    for number, told in enumerate(wrong.items()):
        said = re.findall(failures, compared.text)[number]
        assert "Cell outputs differ" in said
        assert all(text in said for text in told)
    assert "2 failed, 2 passed" in compared.text


def test_an_output_that_the_notebook_lacks_fails(book):
    file = book / "chapters/01_toy.ipynb"
    notebook = nbformat.read(file, as_version=4)
    notebook.cells[1].outputs = []
    nbformat.write(notebook, file)
    assert "Cell outputs differ" in validate(book).text


def change_a_cell(book):
    for file in (book / "chapters").glob("01_toy.*"):
        file.write_text(file.read_text().replace("7 * 3", "3 * 7"))


def change_the_notebook_alone(book):
    notebook = book / "chapters/01_toy.ipynb"
    notebook.write_text(notebook.read_text().replace("7 * 3", "3 * 7"))


def change_the_record(book):
    (book / "models/record.json").write_text("22")


@pytest.mark.parametrize("change", [change_a_cell, change_the_notebook_alone, change_the_record])
def test_only_what_was_recorded_as_it_stands_is_taken(book, change):
    assert [cell.source for cell in executed_cells(book)][1:] == [COUNT, DRAW, RAISE]
    change(book)
    recorded.fingerprint_of.cache_clear()
    assert executed_cells(book) == []
    gc.collect()


def executed_cells(book):
    notebook = nbformat.read(book / "chapters/01_toy.ipynb", as_version=4)
    return recorded.executed_cells(notebook, book / "chapters/01_toy.md")


def test_a_notebook_gets_what_the_book_printed_as_if_it_had_been_executed_itself(book):
    """But for the picture, which it does not keep: the same file, so that only its own chapter changes it."""
    file = book / "chapters/01_toy.ipynb"
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        cell.outputs, cell.execution_count = [], None
    sync_notebooks.take_outputs(notebook, executed_cells(book))
    assert nbformat.writes(notebook) + "\n" == file.read_text("utf-8")
    gc.collect()


def test_a_zero_has_no_sign_and_any_other_number_has():
    def sanitized(text):
        for pattern, replacement in playback.SAME.items():
            text = re.sub(pattern, replacement, text)
        return text

    assert sanitized("off by [ 0. -0.  -0.00  1.5]") == sanitized("off by [0. 0. 0.00 1.5]")
    for one, other in (("[-0.01]", "[0.01]"), ("-0.5", "0.5"), ("1-0", "10"), ("[1. 0.]", "[1.0.]")):
        assert sanitized(one) != sanitized(other)


def test_the_seconds_of_each_cell_are_recorded(book):
    chapter = recorded.recorded(book / "chapters/01_toy.md")
    assert [cell.source for cell in chapter.cells] == [COUNT, GUARD, DRAW, RAISE]
    draws = max(chapter.seconds)
    assert chapter.seconds[2] == draws > 0.1
    assert recorded.dearest(chapter)[0] == f"{draws:7.1f} s  cell 3: import matplotlib.pyplot as plt"
    gc.collect()
