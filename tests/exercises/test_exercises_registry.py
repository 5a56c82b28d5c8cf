"""Exercises are found by their files, and imported one by one."""

import sys
from pathlib import Path

from exercise_checks import complaint

from plainformer.exercises.registry import exercise_modules, load_exercise

CHAPTERS = {file.stem for file in (Path(__file__).parents[2] / "chapters").glob("*.md")}


def test_exercise_is_called_as_its_answer():
    assert list(exercise_modules()) == [load_exercise(name).answer.__name__ for name in exercise_modules()]


def test_no_file_is_called_as_the_module_of_a_chapter():
    assert not CHAPTERS & {module.rpartition(".")[2] for module in exercise_modules().values()}


def test_only_the_exercise_that_is_asked_for_is_imported(monkeypatch):
    modules = set(exercise_modules().values())
    for module in modules:
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert "rotary, " in complaint("no_such", len)
    assert not modules & sys.modules.keys()
    load_exercise("rotary")
    assert modules & sys.modules.keys() == {"plainformer.exercises.positions.rotary"}
