"""Executed chapters are kept and missing ones made; neither a failure nor a chapter that is gone stops it."""

import gc
from types import SimpleNamespace

import pytest
from book_running import fresh_outputs, inputs
from jupyter_cache import get_cache

CHAPTER = """---
jupytext:
  text_representation: {{extension: .md, format_name: myst}}
kernelspec: {{display_name: Python 3, language: python, name: python3}}
---

```{{code-cell}} ipython3
{}
```
"""


@pytest.fixture
def app(tmp_path, monkeypatch):
    """As much of Sphinx as is needed, with a folder of chapters."""
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    (tmp_path / "chapters").mkdir()
    config = {"mode": "cache", "cache_path": str(tmp_path / "cache"), "timeout": 60}
    return SimpleNamespace(
        srcdir=tmp_path, config=SimpleNamespace(**{f"nb_execution_{name}": value for name, value in config.items()})
    )


def outputs(app):
    cache = get_cache(app.config.nb_execution_cache_path)
    notebooks = [cache.get_cache_bundle(record.pk).nb for record in cache.list_cache_records()]
    return sorted(cell.outputs[0].text for notebook in notebooks for cell in notebook.cells if cell.outputs)


# Jupyter leaves the event loop of each thread to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_chapters_that_the_cache_lacks_are_executed(app):
    chapters = {"00_two": "print(1 + 1)", "01_three": "print(1 + 2)", "02_wrong": "1 / 0"}
    for name, code in chapters.items():
        (app.srcdir / "chapters" / f"{name}.md").write_text(CHAPTER.format(code))
    fresh_outputs.execute(app)
    assert outputs(app) == ["2\n", "3\n"]  # the chapter that fails is left to Sphinx

    (app.srcdir / "chapters" / "02_wrong.md").unlink()
    (app.srcdir / "chapters" / "01_three.md").write_text(CHAPTER.format("print(5)"))
    fresh_outputs.execute(app)
    assert outputs(app) == ["2\n", "3\n", "5\n"]
    gc.collect()


def test_nothing_is_executed_where_execution_is_off(app):
    (app.srcdir / "chapters" / "00_two.md").write_text(CHAPTER.format("print(1 + 1)"))
    app.config.nb_execution_mode = "off"
    fresh_outputs.execute(app)
    assert outputs(app) == []


def test_the_style_of_plots_is_part_of_the_fingerprint(tmp_path):
    before = fresh_outputs.fingerprint(tmp_path)
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "matplotlibrc").write_text("font.size: 11")
    assert fresh_outputs.fingerprint(tmp_path) != before


USING = """\
import sys

sys.path.insert(0, "../src")
from plainformer.seven import seven

print(seven, len(open("../models/record.json").read()), "os" in dir())
print(file=open("../models/written.json", "w"))
open("../models/written.json").close()"""
SEVEN = '"""A number."""\n\nseven = 7\n'


@pytest.fixture
def using(app):
    """A chapter that uses a module of a package, which has another, and a record."""
    package, models = app.srcdir / "src/plainformer", app.srcdir / "models"
    package.mkdir(parents=True)
    models.mkdir()
    (package / "__init__.py").touch()
    (package / "seven.py").write_text(SEVEN)
    (package / "eight.py").write_text("eight = 8\n")
    (models / "record.json").write_text("[]")
    (models / "other.json").write_text("[]")
    (app.srcdir / "chapters/00_using.md").write_text(CHAPTER.format(USING))
    assert fresh_outputs.execute(app) == ["chapters/00_using"]
    assert outputs(app) == ["7 2 False\n"]
    return app


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_chapter_is_executed_again_when_what_it_used_has_changed(using):
    for file, content in {
        "src/plainformer/seven.py": '# Counted.\n"""Another sentence."""\n\nseven = 7  # and no more\n',
        "src/plainformer/eight.py": "eight = 9\n",
        "models/other.json": "[1, 2]",
        "models/written.json": "[1, 2]",  # by the chapter itself
    }.items():
        (using.srcdir / file).write_text(content)
        assert fresh_outputs.execute(using) == [], file
    for file, content, shown in (
        ("src/plainformer/seven.py", "seven = 77\n", "77 2 False\n"),
        ("models/record.json", "[1, 2]", "77 6 False\n"),
    ):
        (using.srcdir / file).write_text(content)
        assert fresh_outputs.execute(using) == ["chapters/00_using"], file
        assert shown in outputs(using)
    gc.collect()


def test_a_chapter_that_starts_another_python_depends_on_the_whole_package(tmp_path):
    package = tmp_path / "src/plainformer"
    package.mkdir(parents=True)
    (package / "seven.py").write_text(SEVEN)
    (tmp_path / "notes").write_text("process of Python\n")
    assert list(inputs.used(tmp_path / "notes", tmp_path)) == ["src/plainformer/seven.py"]
