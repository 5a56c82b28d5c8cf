"""Executed chapters are kept and missing ones made; neither a failure nor a chapter that is gone stops it."""

import gc
from types import SimpleNamespace

import pytest
from book_running import fresh_outputs
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
