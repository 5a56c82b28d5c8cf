"""In the pages of the site the exercises are checked by Python without JAX, and in the same words."""

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from exercise_checks import complaint, in_float64
from readers_answers import RIGHT, WRONG

from plainformer.exercises import arrays, check
from plainformer.exercises.page import answer
from plainformer.exercises.registry import exercise_modules, load_exercise

SOURCE = Path(__file__).parents[2] / "src"
# What the pages cannot run: its argument is an encoder of the package.
COLAB_ONLY = {"encode"}
each_exercise = pytest.mark.parametrize("name", [name for name in exercise_modules() if name not in COLAB_ONLY])

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


@each_exercise
def test_the_same_is_said_without_jax(name, without_jax, capsys):
    exercise = load_exercise(name)
    check(name, in_float64(exercise.answer))
    wrong = [complaint(name, in_float64(partial(exercise.answer, **each.variants[0]))) for each in exercise.mistakes]
    assert without_jax[name] == [capsys.readouterr().out, *wrong]


# --- the readers' answers ------------------------------------------------------------------------------------------


@pytest.fixture
def numpy_only(monkeypatch):
    monkeypatch.setattr(arrays, "jax", None)


def in_numpy_alone(answers):
    """One of the readers' answers to each exercise that is not compiled by JAX; by `in_numpy`, where there is one."""
    plain = [each for each in answers if not hasattr(each[1], "lower") and each[0] not in COLAB_ONLY]
    return list({each[0]: each for each in sorted(plain, key=lambda each: "in_numpy" in each[1].__qualname__)}.values())


@pytest.mark.parametrize(("name", "function"), in_numpy_alone(RIGHT))
def test_readers_get_arrays_of_numpy_and_pass(name, function, numpy_only, capsys):
    got = []
    check(name, lambda *given: got.extend(map(type, given)) or function(*given))
    assert capsys.readouterr().out.startswith(f"{name}: passed ")
    assert not [kind for kind in got if "jax" in kind.__module__]


@pytest.mark.parametrize(("name", "function", "words"), in_numpy_alone(WRONG))
def test_readers_mistakes_are_named(name, function, words, numpy_only):
    assert re.search(words, complaint(name, function).splitlines()[0])


def test_every_exercise_has_a_readers_answer_without_jax():
    assert {name for name, _ in in_numpy_alone(RIGHT)} == exercise_modules().keys() - COLAB_ONLY


# --- what is written in a page -------------------------------------------------------------------------------------

SCORES = {"scores": "my_scores"}
RIGHT_SCORES = "def my_scores(q, k):\n    return q @ k.T / np.sqrt(q.shape[1])\n"


def test_code_of_the_page_is_run_and_checked():
    is_right, said = answer("print('so far')\n" + RIGHT_SCORES, SCORES)
    assert is_right
    assert said == "so far\nscores: passed 3 checks on 5 queries, 7 keys"


def test_mistakes_are_named_as_in_a_notebook():
    is_right, said = answer("def my_scores(q, k):\n    return q @ k.T\n", SCORES)
    assert not is_right
    assert said == complaint("scores", lambda q, k: q @ k.T)


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
