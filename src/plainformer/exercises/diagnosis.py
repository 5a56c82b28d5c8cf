"""Which of the known mistakes explain the results of a reader's function."""

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np

from plainformer.exercises.model import Exercise, Mistake

Steps = tuple[tuple[str, Callable], ...]


def diagnose(exercise: Exercise, got: list[np.ndarray | str], is_wrong: list[bool]) -> list[Mistake]:
    """Return the mistake, or the two mistakes, that yield what the reader got in each case; an empty list if none does.

    All ordinary cases together tell the most mistakes apart. If none explains them all, those up to the first wrong
    result may still tell one; two at least, since a single one is too easily hit by chance.
    """
    if not any(is_wrong):
        return []
    ordinary = [i for i, case in enumerate(exercise.cases) if not case.is_edge]
    up_to_first = list(range(max(is_wrong.index(True), 1) + 1))
    scopes = [ordinary, up_to_first] if any(is_wrong[i] for i in ordinary) else [up_to_first]
    for scope in scopes:
        if all(isinstance(got[i], str) for i in scope):  # anything may raise everywhere
            continue
        for mistakes, steps in _explanations(exercise):
            if all(_agree(exercise, got[i], _result(exercise, i, steps)) for i in scope):
                return mistakes
    return []


@cache
def _explanations(exercise: Exercise) -> list[tuple[list[Mistake], Steps]]:
    """Single mistakes first, then pairs that do not touch the same step; each with its wrong steps."""
    variants = [(mistake, variant) for mistake in exercise.mistakes for variant in mistake.variants]
    singles = [([mistake], tuple(variant.items())) for mistake, variant in variants]
    pairs = [
        ([one, other], (*variant.items(), *variant_too.items()))
        for (one, variant), (other, variant_too) in itertools.combinations(variants, 2)
        if not variant.keys() & variant_too.keys()
    ]
    return singles + pairs


@cache
def _result(exercise: Exercise, case: int, steps: Steps) -> np.ndarray | None:
    """What comes of wrong steps; `None` if they cannot be carried out."""
    try:
        with np.errstate(all="ignore"):
            return exercise.answer(**exercise.cases[case].inputs, **dict(steps))
    except (ValueError, LookupError):
        return None


def _agree(exercise: Exercise, got: np.ndarray | str, result: np.ndarray | None) -> bool:
    if isinstance(got, str) or result is None:
        return isinstance(got, str) and result is None
    return exercise.is_same(got, result)
