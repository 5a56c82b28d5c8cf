"""One comparison of a transformer with the strongest simple opponent that we found, and what follows from it."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import plainformer as pf

NEW = "new in each step"


class Measure(NamedTuple):
    """How a number is written, how many of it are in one that is recorded, and whether more of it is better."""

    form: str
    scale: float = 1
    is_more_better: bool = False


NATS, CLOSE_NATS, FINE_NATS = Measure(".2f"), Measure(".3f"), Measure(".4f")
SHARE, PERCENT, BLEU = Measure(".1f", 100, True), Measure(".1f", 1, True), Measure(".1f", 1, True)
SQUARES, TINY_SQUARES = Measure(".4f"), Measure(".1e")


class Task(NamedTuple):
    """A comparison: what is asked, and where; both results, seed by seed; and how the transformer was trained.

    `passes` is how often each example to learn from was read. `rate` is the learning rate that was taken, `rates` are
    those that were tried. `on_the_way` is what the transformer had reached after a quarter and a half of the steps,
    where that was measured. `spread` takes the place of that of the seeds, where there is one seed only.
    """

    name: str
    chapter: str
    measure: Measure
    opponent: str
    ours: list[float]
    theirs: list[float]
    passes: float | None
    rate: float
    rates: tuple[float, ...]
    on_the_way: tuple[float, ...] = ()
    spread: float | None = None

    @property
    def apart(self) -> float:
        """The larger of the two spreads: how far the best seed is from the worst."""
        return max(np.ptp(self.ours), np.ptp(self.theirs)) if self.spread is None else self.spread

    @property
    def verdict(self) -> str:
        """Whether the transformer is ahead, by more than twice the spread."""
        gap = (np.mean(self.ours) - np.mean(self.theirs)) * (1 if self.measure.is_more_better else -1)
        return "level" if abs(gap) <= 2 * self.apart else "ahead" if gap > 0 else "behind"

    @property
    def is_inside(self) -> bool:
        """Whether smaller and larger rates than the one taken were tried."""
        return min(self.rates) < self.rate < max(self.rates)


@cache
def record(name: str) -> dict[str, Any]:
    """A record by its name."""
    return pf.data.load_record(name)


def on_the_way(curve) -> tuple[float, float]:
    """What a curve of numbers, or of steps and numbers, says after a quarter and a half of the training."""
    numbers = np.reshape(curve, (len(curve), -1))[:, -1]
    return float(numbers[len(numbers) // 4 - 1]), float(numbers[len(numbers) // 2 - 1])
