"""What the machine can do at best: bare matrix products, and sums over more memory than any cache holds."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks.report import Section, Settings, num_cores, say, table
from benchmarks.timing import in_turn, spread

SIDE = 1024
PRODUCT_FLOPS = 2 * SIDE**3
SUMMED = 2**26  # numbers of 4 bytes


def use_all_cores() -> None:
    """Let PyTorch use as many threads as JAX does."""
    torch.set_num_threads(num_cores())


def products() -> dict:
    """Functions that multiply two matrices, 1,024 × 1,024, float32, by JAX and by PyTorch."""
    square = np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32)
    ours, theirs = jnp.asarray(square), torch.tensor(square)
    multiply = jax.jit(lambda a: a @ a)
    return {"JAX product": lambda: multiply(ours), "PyTorch product": lambda: theirs @ theirs}


def sums() -> dict:
    """Functions that add up 256 MiB of float32, by JAX and by PyTorch."""
    numbers = np.ones(SUMMED, np.float32)
    ours, theirs = jnp.asarray(numbers), torch.from_numpy(numbers)
    add = jax.jit(jnp.sum)
    return {"JAX sum": lambda: add(ours), "PyTorch sum": lambda: theirs.sum()}


def gigaflops(seconds) -> list[float]:
    return [PRODUCT_FLOPS / second / 1e9 for second in seconds]


def gigabytes_per_second(seconds) -> list[float]:
    return [4 * SUMMED / second / 1e9 for second in seconds]


def hardware(settings: Settings) -> Section:
    use_all_cores()
    say("bare products and sums")
    times = in_turn({**products(), **sums()}, settings.rounds)
    rows = [[name, "GFLOP/s", spread(gigaflops(times[name])).show(0)] for name in products()]
    rows += [[name, "GB/s", spread(gigabytes_per_second(times[name])).show(1)] for name in sums()]
    note = "Products of two float32 matrices, 1,024 × 1,024; sums of 256 MiB of float32, the memory's bandwidth."
    return Section("The machine at its best", note + "\n\n" + table(["what", "unit", "speed"], rows), [])
