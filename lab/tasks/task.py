"""One comparison of a transformer with the strongest simple opponent that we found, and what follows from it."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import plainformer as pf


class Measure(NamedTuple):
    """How a number is written, in which multiple, and whether more of it is better."""

    form: str
    scale: float = 1
    is_more_better: bool = False


class Training(NamedTuple):
    """How the transformer was trained, and what it had reached after a quarter and a half of that, where measured.

    `passes` is how often each example was read, and `None` if all are new. `rates` are those that were tried, the one
    that was taken among them.
    """

    passes: float | None
    rate: float
    rates: tuple[float, ...]
    on_the_way: tuple[float, ...] = ()

    @property
    def is_inside(self) -> bool:
        """Whether smaller and larger rates than the one taken were tried."""
        return min(self.rates) < self.rate < max(self.rates)


class Task(NamedTuple):
    """A comparison: what is asked, and where; the results of the transformer and its opponent, seed by seed.

    `spread` takes the place of that of the seeds, where there is one seed only.
    """

    name: str
    chapter: str
    measure: Measure
    opponent: str
    results: tuple[list[float], list[float]]
    training: Training
    spread: float | None = None

    @property
    def apart(self) -> float:
        """The larger of the two spreads: how far the best seed is from the worst."""
        return max(map(np.ptp, self.results)) if self.spread is None else self.spread

    @property
    def verdict(self) -> str:
        """Whether the transformer is ahead, by more than twice the spread."""
        ours, theirs = map(np.mean, self.results)
        gap = (ours - theirs) * (1 if self.measure.is_more_better else -1)
        return "level" if abs(gap) <= 2 * self.apart else "ahead" if gap > 0 else "behind"


@cache
def record(name: str) -> dict[str, Any]:
    """A record by its name."""
    return pf.data.load_record(name)


def on_the_way(curve) -> tuple[float, float]:
    """What a curve of numbers, or of steps and numbers, says after a quarter and a half of the training."""
    numbers = np.reshape(curve, (len(curve), -1))[:, -1]
    return float(numbers[len(numbers) // 4 - 1]), float(numbers[len(numbers) // 2 - 1])


def rates_of(tried) -> tuple[float, ...]:
    """The rates that are the names of what was tried."""
    return tuple(map(float, tried))
