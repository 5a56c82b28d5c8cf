"""Time calls in turn, in one process, and compare them round by round: what the benchmarks share.

Processor time counts all cores and leaves out the waiting, so it is the steadier figure on a machine that others use
too. One call after another, round after round: what slows the machine for a while slows all of them.
"""

import os
import statistics
import time
from typing import NamedTuple

import equinox as eqx
import jax


def forward_and_gradient(call):
    """Compile: module, batch and cotangent to outputs and gradients (for the parameters and the batch)."""

    @jax.jit
    def run(module, x, cotangent):
        outputs, backward = jax.vjp(call, module, x)
        return outputs, backward(cotangent)

    return run


def one_by_one(call):
    """Make of a call on one text, `(seq, d_model)`, one on a batch of them."""
    return lambda module, x: jax.vmap(lambda rows: call(module, rows))(x)


def one_below_the_other(call):
    """Make of a call on the rows of several texts, with `num_texts`, one on a batch of them."""
    return lambda module, x: call(module, x.reshape(-1, x.shape[-1]), num_texts=len(x)).reshape(x.shape)


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


def in_turn(runs, rounds: int, pause: float = 0.05, calls: int = 1) -> dict[str, list[float]]:
    """Time `runs`, a dictionary from names to functions without arguments, `rounds` times in turn: seconds per call.

    In each round a function is called `calls` times at a stretch, as a loop would call it: a short call by itself finds
    the caches full of what others left there.

    Each is called once before, to compile. The pause lets the threads of one library fall asleep before the next one
    starts: they wait for more work by spinning, on the cores that the other needs.
    """
    for run in runs.values():
        jax.block_until_ready(run())
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(pause)
            start = time.perf_counter()
            for _ in range(calls):
                jax.block_until_ready(run())
            times[name].append((time.perf_counter() - start) / calls)
    return times


def measure(run, *arguments):
    """Wall-clock and processor time of one call, in milliseconds."""
    wall, processor = time.perf_counter(), time.process_time()
    jax.block_until_ready(run(*arguments))
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - processor)


def compare(runs, title, repetitions):
    """Time `runs`, a dictionary from names to (function, arguments …), and hold the others against the first."""
    square = jax.random.normal(jax.random.key(0), (1024, 1024))
    runs = {**runs, "1024^3 product": (jax.jit(lambda a: a @ a), square)}
    for run in runs.values():
        measure(*run)  # compile
    times = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            times[name].append(measure(*run))

    print(f"{title}, {repetitions} repetitions")
    print(f"jax {jax.__version__}, equinox {eqx.__version__}, load {os.getloadavg()[0]:.1f}; median (quartiles)")
    print(f"{'':26}{'wall clock':28}processor time")
    for name, pairs in times.items():
        wall, processor = (spread(column).show(1) for column in zip(*pairs, strict=True))
        print(f"{name + ', ms':26}{wall:28}{processor}")
    ours, *others = list(runs)[:-1]
    for name in others:
        wall, processor = (
            ratios(theirs, mine).show(2)
            for theirs, mine in zip(zip(*times[name], strict=True), zip(*times[ours], strict=True), strict=True)
        )
        print(f"{f'{name} / {ours}':26}{wall:28}{processor}")
    rates = [2 * 1024**3 / 1e6 / wall for wall, _ in times["1024^3 product"]]
    print(f"{'bare product, GFLOP/s':26}{spread(rates).show(0)}")
