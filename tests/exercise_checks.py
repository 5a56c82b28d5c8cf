"""What the tests of the exercises share: a reader's function goes in, the message comes out."""

import re
from functools import partial

import numpy as np
import pytest

from plainformer.exercises import EXERCISES, ExerciseError, check


def complaint(name, function):
    with pytest.raises(ExerciseError) as caught:
        check(name, function)
    return str(caught.value)


def in_numpy(function):
    """The function of a reader who stays with NumPy, whatever arrays come."""
    return lambda *given: function(*(np.asarray(each) if hasattr(each, "shape") else each for each in given))


def check_no_two_mistakes_are_confused(name):
    """Each way to go wrong is called by its own name, and not by that of another that looks alike."""
    exercise = EXERCISES[name]
    for mistake, steps in ((each, way) for each in exercise.mistakes for way in each.ways):
        found = complaint(name, in_float64(partial(exercise.answer, **steps)))
        assert found.startswith(f"{name}: {mistake.says}.\nWith\n")
        assert found.endswith(f"\n{mistake.asks}")
        assert mistake.asks.endswith("?")


def check_readers_make_every_mistake(name, wrong):
    """Every mistake is made by a reader in `wrong`: exercise, function, words that only one mistake's message has."""
    mistakes = EXERCISES[name].mistakes
    made = [[m.says for m in mistakes if re.search(words, m.says)] for where, _, words in wrong if where == name]
    assert all(len(says) == 1 for says in made)
    assert {says for (says,) in made} == {mistake.says for mistake in mistakes}


def check_results_of_mistakes_differ(name):
    """On the inputs together, the results of any two mistakes differ, and each from the right one."""
    exercise = EXERCISES[name]
    mistakes = [("right", [{}]), *((mistake.says, mistake.ways) for mistake in exercise.mistakes)]
    results = [(says, _results(exercise, steps)) for says, ways in mistakes for steps in ways]
    for i, (says, one) in enumerate(results):
        for says_too, other in results[i + 1 :]:
            if says != says_too:
                assert not all(_is_same(exercise, a, b) for a, b in zip(one, other, strict=True)), (says, says_too)


def _results(exercise, steps):
    results = []
    for case in exercise.cases():
        try:
            with np.errstate(all="ignore"):
                results.append(exercise.answer(**case.inputs, **steps))
        except (ValueError, LookupError):
            results.append(None)
    return results


def _is_same(exercise, one, other):
    if one is None or other is None:
        return one is other
    return exercise.is_same(one, other)


def in_float64(answer):
    """A reader's function that gives our own answer, right or wrong, in double precision."""
    return lambda *given: answer(*(_wide(each) if hasattr(each, "shape") else each for each in given))


def _wide(array):
    return np.asarray(array, array.dtype if array.dtype.kind in "bi" else np.float64)
