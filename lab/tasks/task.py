"""One comparison of a transformer with the strongest simple opponents that we found, and what follows from it."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import plainformer as pf

Seeds = list[float]


def deviation(seeds: Seeds) -> float:
    """The standard deviation of seeds as an estimate from a sample; of one alone 0."""
    return float(np.std(seeds, ddof=1)) if len(seeds) > 1 else 0.0


class Measure(NamedTuple):
    """How a number is written, in which multiple, and whether more of it is better."""

    form: str
    scale: float = 1
    is_more_better: bool = False


class Training(NamedTuple):
    """How the transformer was trained.

    `passes` is how often each example was read, and `None` if all are new. `rates` are those that were tried with this
    task, the one that was taken among them. `shorter` is the share of the steps in another training, and what that
    reached; or of the same training, measured on the way.
    """

    passes: float | None
    rate: float
    rates: tuple[float, ...]
    shorter: tuple[float, float] | None = None

    @property
    def is_inside(self) -> bool:
        """Whether smaller and larger rates than the one taken were tried."""
        return min(self.rates) < self.rate < max(self.rates)


class Task(NamedTuple):
    """A comparison: what is asked, and where; the results of the transformer and of its opponent, seed by seed.

    The opponent learns from the same examples. `told` is one that knows something of how they were
    made, with its result. `spread` takes the place of that of the seeds, where there is one seed only.
    """

    name: str
    chapter: str
    measure: Measure
    opponent: str
    ours: Seeds
    theirs: Seeds
    training: Training
    told: tuple[str, float] | None = None
    spread: float | None = None

    def apart(self, spread_of: Callable[[Seeds], float]) -> float:
        """The larger of the two spreads."""
        return max(map(spread_of, (self.ours, self.theirs))) if self.spread is None else self.spread

    def ahead_of(self, others: Seeds) -> float:
        """By how much the transformer is ahead, in the mean of the seeds."""
        gap = float(np.mean(self.ours) - np.mean(others))
        return gap if self.measure.is_more_better else -gap

    def verdict(self, spread_of: Callable[[Seeds], float] = deviation) -> str:
        """Whether the transformer is ahead of what learns from the same, by more than twice the spread."""
        gap = self.ahead_of(self.theirs)
        return "level" if abs(gap) <= 2 * self.apart(spread_of) else "ahead" if gap > 0 else "behind"


@cache
def record(name: str) -> dict[str, Any]:
    """A record by its name."""
    return pf.data.load_record(name)


def half_way(curve) -> tuple[float, float]:
    """What a curve of steps and numbers says in the middle of the training."""
    _, number = curve[len(curve) // 2 - 1]
    return 0.5, float(number)


def rates_of(tried) -> tuple[float, ...]:
    """The rates that are the names of what was tried."""
    return tuple(map(float, tried))
