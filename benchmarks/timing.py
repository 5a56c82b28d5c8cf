"""Time functions in turn, in one process, and compare them round by round: what the benchmarks share.

One call after another, round after round: what slows the machine for a while slows all of them.
"""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import jax


class Spread(NamedTuple):
    """A median between its quartiles."""

    low: float
    middle: float
    high: float

    def show(self, digits: int) -> str:
        return f"{self.middle:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def spread(numbers) -> Spread:
    """The quartiles of the numbers; of a single one, itself."""
    numbers = list(numbers)
    if len(numbers) == 1:
        return Spread(*3 * numbers)
    return Spread(*statistics.quantiles(numbers, n=4, method="inclusive"))


def ratios(numerators, denominators) -> Spread:
    """The spread of the ratios, each of two numbers of the same round."""
    return spread(above / below for above, below in zip(numerators, denominators, strict=True))


def milliseconds(seconds, digits: int = 1) -> str:
    """The spread of times, in milliseconds."""
    return spread(1e3 * second for second in seconds).show(digits)


def in_turn(
    runs: dict[str, Callable],
    rounds: int,
    pause: float = 0.05,
    calls: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time `runs`, a dictionary from names to functions without arguments, `rounds` times in turn: seconds per call.

    In each round a function is called `calls` times at a stretch, as a loop would call it: a short call by itself finds
    the caches full of what others left there.

    Each is called once before, to compile. The pause lets the threads of one library fall asleep before the next one
    starts: they wait for more work by spinning, on the cores that the other needs.

    The `clock` may be `time.process_time`, which counts all cores and leaves out the waiting: the steadier figure on a
    machine that others use too.
    """
    for run in runs.values():
        jax.block_until_ready(run())
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(pause)
            start = clock()
            for _ in range(calls):
                jax.block_until_ready(run())
            times[name].append((clock() - start) / calls)
    return times
