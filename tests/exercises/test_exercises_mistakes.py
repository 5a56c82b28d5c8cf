"""The mistakes that the exercises know are made by readers and named (those of 02 and 03: test_exercises)."""

import re
from functools import partial

import numpy as np
import pytest
import readers_answers_blocks
import readers_answers_decoder
import readers_answers_encoder
import readers_answers_positions
import readers_answers_seq2seq
import readers_answers_tokens
import readers_answers_vision
from exercise_checks import complaint, in_float64

from plainformer.exercises import (
    EXERCISES,
    blocks,
    decoder,
    encoder,
    notation,
    positions,
    seq2seq,
    tokens,
    vision,
    windows,
)

MODULES = (notation, tokens, windows, blocks, positions, decoder, encoder, seq2seq, vision)
NAMES = [name for module in MODULES for name in module.EXERCISES]
WRONG = [
    *readers_answers_tokens.WRONG,
    *readers_answers_blocks.WRONG,
    *readers_answers_positions.WRONG,
    *readers_answers_decoder.WRONG,
    *readers_answers_encoder.WRONG,
    *readers_answers_seq2seq.WRONG,
    *readers_answers_vision.WRONG,
]


@pytest.mark.parametrize(("name", "function", "names"), WRONG)
def test_check_names_the_readers_mistake(name, function, names):
    first = complaint(name, function).splitlines()[0]
    assert re.search(names, first)
    assert "; and " not in first


@pytest.mark.parametrize("name", EXERCISES)
def test_no_two_mistakes_are_confused(name):
    """Each way to go wrong is called by its own name, and not by that of another that looks alike."""
    exercise = EXERCISES[name]
    for mistake, steps in ((each, way) for each in exercise.mistakes for way in each.ways):
        found = complaint(name, in_float64(partial(exercise.answer, **steps)))
        assert found.startswith(f"{name}: {mistake.says}.\nWith\n")
        assert found.endswith(f"\n{mistake.asks}")
        assert mistake.asks.endswith("?")


@pytest.mark.parametrize("name", NAMES)
def test_every_mistake_is_made_by_a_reader_here(name):
    """A wrong answer is an exercise, a function, and words that only one mistake's message has."""
    mistakes = EXERCISES[name].mistakes
    made = [[m.says for m in mistakes if re.search(words, m.says)] for where, _, words in WRONG if where == name]
    assert all(len(says) == 1 for says in made)
    assert {says for (says,) in made} == {mistake.says for mistake in mistakes}


@pytest.mark.parametrize("name", NAMES)
def test_results_of_mistakes_differ(name):
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
