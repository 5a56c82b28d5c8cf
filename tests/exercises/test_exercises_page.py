"""In the pages of the site the exercises are checked by Python without JAX, and in the same words."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from exercise_checks import complaint, in_float64
from readers_answers import RIGHT

from plainformer.exercises import arrays, check
from plainformer.exercises.page import answer
from plainformer.exercises.registry import exercise_modules, load_exercise

SOURCE = Path(__file__).parents[2] / "src"
# What the pages cannot run: its argument is an encoder of the package.
COLAB_ONLY = {"encode"}

# Right, and then wrong in each known way, in an interpreter that has NumPy alone.
WITHOUT_JAX = """
import contextlib, io, json, sys
for heavy in ("jax", "jaxlib", "equinox", "jaxtyping", "beartype", "optax", "ml_dtypes", "scipy", "matplotlib"):
    sys.modules[heavy] = None
import numpy as np
from plainformer.exercises import ExerciseError, check
from plainformer.exercises.registry import exercise_modules, load_exercise

def said(name, steps):
    def wide(*given):
        arrays = [each.astype(float) if getattr(each, "dtype", None) == np.float32 else each for each in given]
        return exercise.answer(*arrays, **steps)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            check(name, wide)
    except ExerciseError as error:
        return str(error)
    return out.getvalue()

found = {}
for name in exercise_modules():
    try:
        exercise = load_exercise(name)
    except ImportError:
        continue
    found[name] = [said(name, {}), *(said(name, mistake.variants[0]) for mistake in exercise.mistakes)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def without_jax():
    """What is said of right and wrong answers where there is no JAX, by exercise."""
    command = [sys.executable, "-c", WITHOUT_JAX]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)})
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_all_but_one_need_arrays_only(without_jax):
    assert exercise_modules().keys() - without_jax.keys() == COLAB_ONLY


def test_the_same_is_said_without_jax(without_jax, capsys):
    """In another Python, whose mistakes are the first variant of each."""
    for name, said in without_jax.items():
        exercise = load_exercise(name)
        check(name, in_float64(exercise.answer))
        wrong = [in_float64(partial(exercise.answer, **mistake.variants[0])) for mistake in exercise.mistakes]
        passed = capsys.readouterr().out
        if name == "transformer":  # is tried on stored weights, too, where they can be read
            passed = passed.replace("passed 4", "passed 3")
        assert said == [passed, *(complaint(name, function) for function in wrong)], name


def test_readers_get_arrays_of_numpy_and_pass(monkeypatch, capsys):
    """One of the readers' answers to each exercise that is not compiled by JAX; by `in_numpy`, where there is one."""
    monkeypatch.setattr(arrays, "jax", None)
    plain = [each for each in RIGHT if not hasattr(each[1], "lower") and each[0] not in COLAB_ONLY]
    answers = dict(sorted(plain, key=lambda each: "in_numpy" in each[1].__qualname__))
    assert answers.keys() == exercise_modules().keys() - COLAB_ONLY
    got = []
    for name, function in answers.items():
        check(name, lambda *given, function=function: got.extend(map(type, given)) or function(*given))
        assert capsys.readouterr().out.startswith(f"{name}: passed ")
    assert not [kind for kind in got if "jax" in kind.__module__]


# --- what is written in a page -------------------------------------------------------------------------------------

SCORES = {"scores": "my_scores"}
RIGHT_SCORES = "def my_scores(q, k):\n    return q @ k.T / np.sqrt(q.shape[1])\n"


def test_code_of_the_page_is_run_and_checked_and_mistakes_are_named_as_in_a_notebook():
    passed = "so far\nscores: passed 3 checks on 5 queries, 7 keys"
    assert answer("print('so far')\n" + RIGHT_SCORES, SCORES) == (True, passed)
    mistaken = complaint("scores", lambda q, k: q @ k.T)
    assert answer("def my_scores(q, k):\n    return q @ k.T\n", SCORES) == (False, mistaken)


def test_what_was_written_above_may_be_used_and_its_faults_are_not_told():
    above = ["print('above')\n" + RIGHT_SCORES, "1 / 0", "raise SystemExit"]
    weights = "def my_scores_too(q, k):\n    return my_scores(q, k)\n"
    assert answer(weights, {"scores": "my_scores_too"}, above) == (True, "scores: passed 3 checks on 5 queries, 7 keys")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def my_scores(q, k)\n    return q\n", "line 1\n    def my_scores(q, k)"),
        ("x = 1\ny = x / 0\n", '  File "<your code>", line 2, in <module>\n    y = x / 0'),
        ("raise SystemExit\n", "SystemExit"),
        ("x = 1\n", "scores: there is no function my_scores yet; expected def my_scores(...) in your code."),
        ("def my_scores(q, k):\n    return q[9, 9, 9]\n", "IndexError on line 2 (`return q[9, 9, 9]`)"),
        ("def my_scores(q, k):\n    return jnp.dot(q, k)\n", "write np where the chapter writes jnp"),
        ("raise ImportError(\"No module named 'jax'\")\n", "There is no JAX in this page"),
    ],
)
def test_what_goes_wrong_is_told_with_the_readers_lines(code, words):
    is_right, said = answer(code, SCORES)
    assert not is_right
    assert words in said
    assert "page.py" not in said


def test_kinds_of_numbers_are_told_apart_without_jax():
    kinds = {np.bool_: True, np.int8: True, np.float16: True, np.longdouble: True, np.complex64: False, np.str_: False}
    assert {kind: arrays.is_real(np.dtype(kind)) for kind in kinds} == kinds
    assert arrays.is_real(np.dtype(ml_dtypes.bfloat16))
