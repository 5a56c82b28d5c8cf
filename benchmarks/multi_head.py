"""Time one forward and backward pass of `pf.MultiHeadAttention` against Equinox's, in turn, in one process.

Run it as `python benchmarks/multi_head.py [repetitions]`. Ratios above 1 mean that Plainformer is faster. Processor
time counts both cores and leaves out the waiting, so it is the steadier figure on a machine that others use too.
"""

import os
import statistics
import sys
import time

import equinox as eqx
import jax

import plainformer as pf

BATCH, SEQ_LEN, D_MODEL, NUM_HEADS = 8, 256, 384, 6


def forward_and_gradient(call):
    """Compile: module, inputs and cotangent to outputs and gradients (for the parameters and the inputs)."""

    @jax.jit
    def run(module, x, cotangent):
        outputs, backward = jax.vjp(lambda module, x: jax.vmap(lambda row: call(module, row))(x), module, x)
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


def main(repetitions: int = 25):
    ours_key, theirs_key, x_key, cotangent_key = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(x_key, (BATCH, SEQ_LEN, D_MODEL))
    cotangent = jax.random.normal(cotangent_key, x.shape)
    square = jax.random.normal(x_key, (1024, 1024))
    # Equinox keeps non-arrays among its leaves, which jax.jit refuses; they are put aside here.
    theirs, static = eqx.partition(eqx.nn.MultiheadAttention(NUM_HEADS, D_MODEL, key=theirs_key), eqx.is_array)
    runs = {
        "plainformer": (
            forward_and_gradient(lambda module, row: module(row)),
            pf.MultiHeadAttention(D_MODEL, NUM_HEADS, key=ours_key),
            x,
            cotangent,
        ),
        "equinox": (
            forward_and_gradient(lambda arrays, row: eqx.combine(arrays, static)(row, row, row)),
            theirs,
            x,
            cotangent,
        ),
        "1024^3 product": (jax.jit(lambda a: a @ a), square),
    }
    for run in runs.values():
        measure(*run)  # compile
    times = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            times[name].append(measure(*run))

    print(f"batch {BATCH}, {SEQ_LEN} tokens, d_model {D_MODEL}, {NUM_HEADS} heads, {repetitions} repetitions")
    print(f"jax {jax.__version__}, equinox {eqx.__version__}, load {os.getloadavg()[0]:.1f}; median (quartiles)")
    print(f"{'':24}{'wall clock':28}processor time")
    for name, pairs in times.items():
        wall, processor = (quartiles(column, 1) for column in zip(*pairs, strict=True))
        print(f"{name + ', ms':24}{wall:28}{processor}")
    pairs = zip(times["equinox"], times["plainformer"], strict=True)
    ratios = [(theirs[0] / ours[0], theirs[1] / ours[1]) for theirs, ours in pairs]
    wall, processor = (quartiles(column, 2) for column in zip(*ratios, strict=True))
    print(f"{'equinox / plainformer':24}{wall:28}{processor}")
    rates = [2 * 1024**3 / 1e6 / wall for wall, _ in times["1024^3 product"]]
    print(f"{'bare product, GFLOP/s':24}{quartiles(rates, 0)}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
