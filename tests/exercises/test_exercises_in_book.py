"""Every exercise of the book that asks for a function has a check, and its solution runs it."""

import ast
import re
from pathlib import Path

import pytest

from plainformer.exercises.registry import exercise_modules

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*_*.md"))
EXERCISE = re.compile(r"^`{3,}\{exercise(?:-start)?\}.*?\n:label: (\S+)\n(.*?)(?=^`{3,}\{solution)", re.M | re.S)
SOLUTION = re.compile(r"^(`{3,})\{solution-start\} (\S+)(.*?)^`{3,}\{solution-end\}", re.M | re.S)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.M | re.S)
FUNCTION = re.compile(r"`(\w+)\([^`]*\)`")
CHECK = re.compile(r"`pf\.exercises\.check\(\"(\w+)\", (\w+)\)`")

# Two appendices, of mistakes and of data of one's own, ask nothing.
ASKING = [file for file in CHAPTERS if "{exercise" in file.read_text(encoding="utf-8")]
each_chapter = pytest.mark.parametrize("file", ASKING, ids=lambda file: file.stem)


def exercises(file):
    """The text of each exercise, by label."""
    return dict(EXERCISE.findall(file.read_text(encoding="utf-8")))


def solutions(file):
    """The code of each solution that has any, by label."""
    found = {}
    for _, label, text in SOLUTION.findall(file.read_text(encoding="utf-8")):
        cells = [re.sub(r"\A:tags:.*\n", "", cell) for cell in CELL.findall(text)]
        found[label] = ast.parse("\n".join(cells))
    return found


def checked(tree):
    """Which function the code passes to which check."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    checks = [call for call in calls if ast.unparse(call.func) == "pf.exercises.check"]
    return {(ast.literal_eval(call.args[0]), ast.unparse(call.args[1])) for call in checks}


def defined(tree):
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("my_")}


@each_chapter
def test_every_exercise_and_solution_is_found(file):
    text = file.read_text(encoding="utf-8")
    assert len(exercises(file)) == len(re.findall(r"^`{3,}\{exercise(?:-start)?\}", text, re.MULTILINE)) >= 3
    assert len(solutions(file)) == text.count("{solution-start}")


@each_chapter
def test_functions_of_solutions_are_checked(file):
    for label, tree in solutions(file).items():
        unchecked = defined(tree) - {function for _, function in checked(tree)}
        assert not unchecked, f"{file.name}: the solution of {label} defines {unchecked}, which no check tries"


@each_chapter
def test_functions_that_an_exercise_asks_for_are_checked(file):
    code = solutions(file)
    for label, text in exercises(file).items():
        text = " ".join(text.split())
        asked = set(re.findall(r"[Ww]rite (?:first )?`(\w+)\(", text))
        asked |= {name for name in FUNCTION.findall(text) if name.startswith("my_")}
        said = set(CHECK.findall(text))
        assert asked == {function for _, function in said}, f"{file.name}: {label} asks for {asked} and checks {said}"
        assert said <= (checked(code[label]) if label in code else set()), f"{file.name}: the solution of {label}"


@each_chapter
def test_checks_that_a_chapter_names_exist(file):
    named = set(re.findall(r"exercises\.check\(\"(\w+)\"", file.read_text(encoding="utf-8")))
    assert named <= set(exercise_modules())
    assert named, f"{file.name} has no exercise with a check"


def test_every_check_belongs_to_an_exercise():
    asked = {name for file in CHAPTERS for text in exercises(file).values() for name, _ in CHECK.findall(text)}
    assert asked == set(exercise_modules())
