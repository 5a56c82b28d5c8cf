"""Every exercise of the book that asks for a function has a check, and its solution runs it."""

import ast
import re
from pathlib import Path

from plainformer.exercises.registry import exercise_modules

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*.md"))
EXERCISE = re.compile(r"^`{3,}\{exercise(?:-start)?\}.*?\n:label: (\S+)\n(.*?)(?=^`{3,}\{solution)", re.M | re.S)
SOLUTION = re.compile(r"^(`{3,})\{solution-start\} (\S+)(.*?)^`{3,}\{solution-end\}", re.M | re.S)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.M | re.S)
FUNCTION = re.compile(r"`(\w+)\([^`]*\)`")
CHECK = re.compile(r"`pf\.exercises\.check\(\"(\w+)\", (\w+)\)`")

# Two appendices, of mistakes and of data of one's own, ask nothing.
ASKING = [file for file in CHAPTERS if "{exercise" in file.read_text(encoding="utf-8")]


def exercises(file):
    """The text of each exercise, by label."""
    return dict(EXERCISE.findall(file.read_text(encoding="utf-8")))


def solutions(file):
    """The code of each solution that has any, by label."""
    found = {}
    for _, label, text in SOLUTION.findall(file.read_text(encoding="utf-8")):
        cells = [
            re.sub(r"\A(:tags:[^\n]*\n|---\n.*?^---\n)", "", cell, flags=re.S | re.M) for cell in CELL.findall(text)
        ]
        found[label] = ast.parse("\n".join(cells))
    return found


def checked(tree):
    """Which function the code passes to which check."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    checks = [call for call in calls if ast.unparse(call.func) == "pf.exercises.check"]
    return {(ast.literal_eval(call.args[0]), ast.unparse(call.args[1])) for call in checks}


def defined(tree):
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("my_")}


def test_every_exercise_and_solution_is_found():
    for file in ASKING:
        text = file.read_text(encoding="utf-8")
        number = len(re.findall(r"^`{3,}\{exercise(?:-start)?\}", text, re.MULTILINE))
        assert len(exercises(file)) == number >= 3, file.name
        assert len(solutions(file)) == text.count("{solution-start}"), file.name


def test_functions_that_an_exercise_asks_for_are_checked_and_those_of_solutions():
    for file in ASKING:
        code = solutions(file)
        for label, tree in code.items():
            unchecked = defined(tree) - {function for _, function in checked(tree)}
            assert not unchecked, f"{file.name}: the solution of {label} defines {unchecked}, which no check tries"
        for label, text in exercises(file).items():
            text = " ".join(text.split())
            asked = set(re.findall(r"[Ww]rite (?:first )?`(\w+)\(", text))
            asked |= {name for name in FUNCTION.findall(text) if name.startswith("my_")}
            said = set(CHECK.findall(text))
            wanted = {function for _, function in said}
            assert asked == wanted, f"{file.name}: {label} asks for {asked} and checks {said}"
            found = checked(code[label]) if label in code else set()
            assert said <= found, f"{file.name}: the solution of {label}"


def test_chapters_name_the_checks_that_there_are():
    asked = {name for file in CHAPTERS for text in exercises(file).values() for name, _ in CHECK.findall(text)}
    assert asked == set(exercise_modules())
    for file in ASKING:
        named = set(re.findall(r"exercises\.check\(\"(\w+)\"", file.read_text(encoding="utf-8")))
        assert named, f"{file.name} has no exercise with a check"
        assert named <= set(exercise_modules()), file.name
