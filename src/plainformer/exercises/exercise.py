"""What an exercise is made of: a right answer in steps, inputs, and mistakes that replace a step.

To add an exercise, write its answer as a function of NumPy arrays whose steps are keyword arguments with the right ones
as defaults; list the mistakes; and add it to the `EXERCISES` of its chapter's module. Two mistakes made together are
then recognised as well, since each replaces a step of its own.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np


class Mistake:
    """What the reader did, a question that points the way, and the wrong steps that give the mistake away.

    **Arguments**

    - `step`: the name of the step that goes wrong.
    - `says`: what the reader did, to follow the exercise's name and a colon.
    - `asks`: a question that leads to the right step.
    - `ways`: what may stand in the step's place; a dictionary where more than one step must be replaced. A way that
      cannot be carried out, because shapes do not fit or there is no such key or index, stands for a function that
      raises.
    """

    def __init__(self, step: str, says: str, asks: str, *ways: Callable | dict[str, Callable]):
        self.says, self.asks = says, asks
        self.ways = [way if isinstance(way, dict) else {step: way} for way in ways]


class Case(NamedTuple):
    """One input; edge cases count only once the ordinary ones are right."""

    name: str
    inputs: dict
    is_edge: bool = False


class Exercise(NamedTuple):
    """What is asked, on which inputs, and the ways to go wrong."""

    answer: Callable  # the right answer, an array, with its steps as keyword arguments
    mistakes: list[Mistake]
    cases: Callable[
        [], list[Case]
    ]  # inputs by argument name; their sizes differ pairwise, so that no two mistakes agree
    examples: Callable[[], list[dict]]  # small enough to check by hand; the first that shows the mistake is shown
    result: str  # the axes of the result
    on: str  # what the exercise was tried on; filled in with the shapes of the first case
    has_rows_of_weights: bool = False
    is_exact: bool = False  # the result is made of ids: whole numbers, of which none may differ
    parts: tuple[str, ...] = ()  # what the function returns, where that is several arrays of one shape
    remark: Callable[[dict, np.ndarray], str] | None = None  # what to add to the numbers of an example, in brackets

    def is_same(self, came: np.ndarray, expected: np.ndarray) -> bool:
        """Whether the reader's result counts as this one."""
        if came.shape != expected.shape:
            return False
        if self.is_exact:
            return bool((came == expected).all())
        return np.allclose(came.astype(np.float64), expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def is_real(dtype: np.dtype) -> bool:
    """Whether these are numbers that can be compared with ours; JAX's half precision is among them."""
    return dtype.kind == "b" or (jnp.issubdtype(dtype, jnp.number) and not jnp.issubdtype(dtype, jnp.complexfloating))
