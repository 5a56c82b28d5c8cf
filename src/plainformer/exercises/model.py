"""What an exercise is made of: a right answer in steps, inputs, and mistakes that replace a step.

To add an exercise, write a file of its name in the folder of its chapter: its answer as a function of NumPy arrays
whose steps are keyword arguments with the right ones as defaults, the mistakes, and `EXERCISE`, which holds them
together. Two mistakes made together are then recognised as well, since each replaces a step of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np


class Mistake:
    """What the reader did, a question that points the way, and the wrong steps that give the mistake away.

    Args:
        diagnosis: what the reader did, to follow the exercise's name and a colon.
        hint: a question that leads to the right step.
        *variants: wrong steps by name, a dictionary for each way to make the mistake.
        **steps: the same, where one dictionary is enough; a list holds what may stand in a step's place. A variant that
            cannot be carried out, because shapes do not fit or there is no such key or index, stands for a function
            that raises.
    """

    def __init__(self, diagnosis: str, hint: str, *variants: dict[str, Callable], **steps: Callable | list[Callable]):
        self.diagnosis, self.hint = diagnosis, hint
        choices = [step if isinstance(step, list) else [step] for step in steps.values()]
        named = [dict(zip(steps, chosen, strict=True)) for chosen in product(*choices)] if steps else []
        self.variants = [*variants, *named]


class Case(NamedTuple):
    """One input; edge cases count only once the ordinary ones are right."""

    name: str
    inputs: dict
    is_edge: bool = False


@dataclass(frozen=True, eq=False)
class Exercise:
    """What is asked, on which inputs, and the ways to go wrong."""

    answer: Callable  # the right answer, an array, with its steps as keyword arguments
    mistakes: list[Mistake]
    cases: list[Case]  # inputs by argument name; their sizes differ pairwise, so that no two mistakes agree
    examples: list[dict]  # small enough to check by hand; the first that shows the mistake is shown
    result: str  # the axes of the result
    tried_on: str  # filled in with the shapes of the first case
    has_rows_of_weights: bool = False
    is_exact: bool = False  # the result is made of ids: whole numbers, of which none may differ
    parts: tuple[str, ...] = ()  # what the function returns, where that is several arrays of one shape
    remark: Callable[[dict, np.ndarray], str] | None = None  # what to add to the numbers of an example, in brackets

    @cached_property
    def expected(self) -> list[np.ndarray]:
        """The right result in each case."""
        return [self.answer(**case.inputs) for case in self.cases]

    def is_same(self, got: np.ndarray, expected: np.ndarray) -> bool:
        """Whether the reader's result counts as this one."""
        if got.shape != expected.shape:
            return False
        if self.is_exact:
            return bool((got == expected).all())
        return np.allclose(got.astype(np.float64), expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def floats(**lists) -> dict[str, np.ndarray]:
    """Return arrays of these numbers, by argument name."""
    return {name: np.array(numbers, np.float64) for name, numbers in lists.items()}


def draw(rng: np.random.Generator, decimals: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return normally distributed numbers in arrays of these shapes, by argument name."""
    return {name: rng.normal(size=shape).round(decimals) for name, shape in shapes.items()}
