"""Right answers pass, and the mistakes that the exercises know are made by readers and named.

The answers in `readers_answers_*` are written as readers would, not with the exercises' own steps.
"""

import itertools
import re
from functools import partial

import numpy as np
import pytest
from exercise_checks import complaint, in_float64
from readers_answers import RIGHT, WRONG

from plainformer.exercises import check
from plainformer.exercises.registry import exercise_modules, load_exercise
from plainformer.exercises.runner import as_argument

# These know all mistakes of another exercise, made by readers there, and their own.
BUILT_ON = {"weights": "scores", "attend": "weights", "multi_head": "attend"}

each_exercise = pytest.mark.parametrize("name", exercise_modules())


@each_exercise
def test_check_passes_right_answers(name, capsys):
    """The last right answer of each exercise, the package's where it has one, gives the examples' results, too."""
    answers = [function for where, function in RIGHT if where == name]
    assert answers, f"no module tests/helpers/readers_answers_*.py has a right answer to {name}"
    exercise = load_exercise(name)
    for function in answers:
        check(name, function)
        assert re.fullmatch(rf"{name}: passed {len(exercise.cases)} checks on [^{{}}\n]+\n", capsys.readouterr().out)
    for inputs in exercise.examples:
        found = answers[-1](*(as_argument(value) for value in inputs.values()))
        found = np.stack(found) if isinstance(found, tuple) and exercise.parts else found
        np.testing.assert_allclose(found, exercise.answer(**inputs), rtol=1e-5, atol=1e-5)


@each_exercise
def test_check_names_the_readers_mistakes_and_a_reader_makes_each_here(name):
    """A wrong answer is an exercise, a function, and words that only one mistake's message has."""
    mistakes = [mistake.diagnosis for mistake in load_exercise(name).mistakes]
    known = {mistake.diagnosis for mistake in load_exercise(BUILT_ON[name]).mistakes} if name in BUILT_ON else set()
    for function, words in ((function, words) for where, function, words in WRONG if where == name):
        first = complaint(name, function).splitlines()[0]
        assert re.search(words, first)
        assert "; and " not in first
        (says,) = (says for says in mistakes if re.search(words, says))
        known.add(says)
    assert known >= set(mistakes)


@each_exercise
def test_no_two_mistakes_are_confused(name):
    """Each variant of a mistake is called by its own name, and not by that of another that looks alike."""
    exercise = load_exercise(name)
    for mistake, steps in ((each, variant) for each in exercise.mistakes for variant in each.variants):
        found = complaint(name, in_float64(partial(exercise.answer, **steps)))
        assert found.startswith(f"{name}: {mistake.diagnosis}.\nWith\n")
        assert found.endswith(f"\n{mistake.hint}")
        assert mistake.hint.endswith("?")


def test_inputs_tell_sizes_apart():
    """Behind two axes of one size a mistake may hide: in the first case only those agree that agree in every case."""
    for name in exercise_modules():
        first, *others = [sizes_of(case.inputs) for case in load_exercise(name).cases]
        for one, other in itertools.combinations(first, 2):
            if first[one] == first[other]:
                both = [case for case in others if {one, other} <= set(case)]
                assert all(case[one] == case[other] for case in both), (name, one, other)
        assert len(set(first.values())) == max(len(set(case.values())) for case in (first, *others)), name


def sizes_of(inputs):
    """The size of every axis of the inputs, by name and place, and every input that is a number."""
    axes = {
        (name, axis): size for name, value in inputs.items() for axis, size in enumerate(getattr(value, "shape", ()))
    }
    return axes | {(name, None): value for name, value in inputs.items() if isinstance(value, int | float)}


def test_two_mistakes_in_different_steps_are_both_named():
    exercise = load_exercise("shift")
    one, other = (
        next(mistake for mistake in exercise.mistakes if step in mistake.variants[0])
        for step in ("frequencies", "block")
    )
    steps = one.variants[0] | other.variants[0]
    said = complaint("shift", lambda offset, d_model: exercise.answer(int(offset), int(d_model), **steps))
    assert f"{one.diagnosis}; and {other.diagnosis}" in said
