"""What devices can do, from their makers' sheets; and what this machine can do, measured."""

import dataclasses
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from plainformer.checks import Positive, PositiveFloat, check_fields, checked


@dataclasses.dataclass(frozen=True)
class Hardware:
    r"""What one device can do at most, and how fast it sends.

    Args:
        flops: floating-point operations a second in matrix products: of dense 16-bit numbers on accelerators.
        memory: bytes of its memory.
        memory_bandwidth: bytes a second between its memory and itself.
        link_bandwidth: bytes a second that it sends to the devices of its node, in one direction.
        network_bandwidth: bytes a second that it sends beyond its node, in one direction; `None` where no sheet says.
        node_size: how many devices are linked in a node, or in a pod of TPUs.
        joins_sums: whether numbers that are to be added are added before they are summed over devices, and a sum of
            which each device keeps a piece is computed in pieces. On GPUs XLA has passes for both, called
            all-reduce-reassociate and reduce-scatter-creator; on processors it does neither.
    """

    flops: PositiveFloat
    memory: PositiveFloat
    memory_bandwidth: PositiveFloat
    link_bandwidth: PositiveFloat
    network_bandwidth: PositiveFloat | None
    node_size: Positive
    joins_sums: bool = True

    def __post_init__(self):
        check_fields(self)


# Makers give the sum of both directions of NVLink and of a TPU's links: here stands half. NVIDIA's operations "with
# sparsity" are halved, too. Each GPU has a network adapter of its own: 200 Gb/s beside an A100, 400 Gb/s otherwise.
HARDWARE = {
    # NVIDIA, A100 Tensor Core GPU data sheet (SXM, 80 GB); network as in Isaev et al. (2023), systems/a100_80g.json.
    "A100": Hardware(312e12, 80e9, 2.039e12, 300e9, 25e9, 8),
    # NVIDIA, H100 Tensor Core GPU data sheet (SXM); network as in Grattafiori et al. (2024), section 3.3.
    "H100": Hardware(989.4e12, 80e9, 3.35e12, 450e9, 50e9, 8),
    # NVIDIA, H200 Tensor Core GPU data sheet (SXM); links and network as in MLCommons (2024).
    "H200": Hardware(989.4e12, 141e9, 4.8e12, 450e9, 50e9, 8),
    # NVIDIA, DGX B200 data sheet, an eighth of the whole; memory, links and network as in MLCommons (2026).
    "B200": Hardware(2250e12, 180e9, 8e12, 900e9, 50e9, 8),
    # Google Cloud (2026), the pages of v5e, v5p and v6e. A pod of v5e has 6.4 Tb/s of network for 256 chips.
    "TPU v5e": Hardware(197e12, 16e9, 819e9, 200e9, 3.125e9, 256),
    "TPU v5p": Hardware(459e12, 95e9, 2765e9, 600e9, None, 8960),
    "TPU v6e": Hardware(918e12, 32e9, 1638e9, 400e9, None, 256),
}

WIDEST = 8192  # rows and columns of the matrices that `this_machine` multiplies


@checked
def this_machine(memory: PositiveFloat, *, size: Positive = 256) -> Hardware:
    r"""Measure how fast one device of this machine multiplies matrices of 32-bit numbers, and copies them.

    Each is the best of five: the three products of a layer with as many outputs as inputs that reads 1,024 rows,
    forward and for the gradients of its rows and its weights; and copies of 32 MiB, which are read and written. Host
    devices share one memory: what they send each other is copied in it, too.

    Args:
        memory: the bytes that the device may fill, which are not measured.
        size: about as wide as the models that are planned, at most 8,192: small products reach less of what a
            processor can do.

    Example:
        >>> machine = pf.models.this_machine(memory=8e9)
        >>> machine.flops > 1e8, machine.memory_bandwidth > 1e7
        (True, True)
    """
    if size > WIDEST:
        raise ValueError(f"size is {size:,}; expected at most {WIDEST:,}: larger matrices take gigabytes.")
    if jax.default_backend() != "cpu":
        expected = "expected a processor. Take the numbers from its maker's sheet: Hardware(flops=…, memory=…, …)"
        raise ValueError(f"This machine computes on its {jax.default_backend()}; {expected}.")
    rows, weight, row, rounds = jnp.ones((1024, size)), jnp.ones((size, size)), jnp.ones(2**23), 16
    products = jax.jit(lambda rows, weight: (rows @ weight, rows @ weight.T, rows.T @ rows))
    # In a loop, so that new memory, which a system hands out page by page, is asked for once.
    copies = jax.jit(lambda row: jax.lax.fori_loop(0, rounds, lambda _, row: row + 1, row))
    bandwidth = rounds * 2 * row.nbytes / _seconds(copies, row)
    return Hardware(
        flops=3 * 2 * len(rows) * size**2 / _seconds(products, rows, weight),
        memory=memory,
        memory_bandwidth=bandwidth,
        link_bandwidth=bandwidth / 2,
        network_bandwidth=None,
        node_size=jax.local_device_count(),
        joins_sums=False,
    )


def _seconds(function: Callable, *arguments) -> float:
    """How long a call of a compiled function takes: the shortest of five, after one that compiles it."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - start)
    return min(times)
