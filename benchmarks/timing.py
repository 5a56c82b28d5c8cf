"""Time calls in turn, in one process, and print their times and ratios: what the benchmarks share.

Processor time counts all cores and leaves out the waiting, so it is the steadier figure on a machine that others use
too. One call after another, round after round: what slows the machine for a while slows all of them.
"""

import os
import statistics
import time

import equinox as eqx
import jax


def forward_and_gradient(call):
    """Compile: module, inputs and cotangent to outputs and gradients (for the parameters and the inputs)."""

    @jax.jit
    def run(module, x, cotangent):
        outputs, backward = jax.vjp(lambda module, x: jax.vmap(lambda rows: call(module, rows))(x), module, x)
        return outputs, backward(cotangent)

    return run


def measure(run, *arguments):
    """Wall-clock and processor time of one call, in milliseconds."""
    wall, processor = time.perf_counter(), time.process_time()
    jax.block_until_ready(run(*arguments))
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - processor)


def quartiles(numbers, digits):
    low, middle, high = statistics.quantiles(numbers, n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


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
        wall, processor = (quartiles(column, 1) for column in zip(*pairs, strict=True))
        print(f"{name + ', ms':26}{wall:28}{processor}")
    ours, *others = list(runs)[:-1]
    for name in others:
        ratios = [(b[0] / a[0], b[1] / a[1]) for a, b in zip(times[ours], times[name], strict=True)]
        wall, processor = (quartiles(column, 2) for column in zip(*ratios, strict=True))
        print(f"{f'{name} / {ours}':26}{wall:28}{processor}")
    rates = [2 * 1024**3 / 1e6 / wall for wall, _ in times["1024^3 product"]]
    print(f"{'bare product, GFLOP/s':26}{quartiles(rates, 0)}")
