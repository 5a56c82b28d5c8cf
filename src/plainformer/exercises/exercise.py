"""What an exercise is made of: a right answer in steps, inputs, and mistakes that replace a step.

To add an exercise, write its answer as a function of NumPy arrays whose steps are keyword arguments with the right ones
as defaults; list the mistakes; and add it to the `EXERCISES` of its chapter's module. Two mistakes made together are
then recognised as well, since each replaces a step of its own.
"""

from collections.abc import Callable
from typing import NamedTuple


class Mistake:
    """What the reader did, a question that points the way, and the wrong steps that give the mistake away.

    **Arguments**

    - `step`: the name of the step that goes wrong.
    - `says`: what the reader did, to follow the exercise's name and a colon.
    - `asks`: a question that leads to the right step.
    - `ways`: what may stand in the step's place; a dictionary where more than one step must be replaced.
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

    answer: Callable  # the right answer, with its steps as keyword arguments
    mistakes: list[Mistake]
    cases: Callable[
        [], list[Case]
    ]  # inputs by argument name; their sizes differ pairwise, so that no two mistakes agree
    examples: Callable[[], list[dict]]  # small enough to check by hand; the first that shows the mistake is shown
    result: str  # the axes of the result
    on: str  # what the exercise was tried on; filled in with the shapes of the first case
    has_rows_of_weights: bool = False
