"""More than one device: a matrix product in parts, what is sent for it, and when that pays."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from plainformer.checks import Count, Positive, PositiveFloat, checked

Cut = Literal["rows", "columns", "summed", "gathered"]


@checked
def cut_product(
    x: Float[Array, "rows summed"], weight: Float[Array, "summed columns"], num_devices: Positive, cut: Cut
) -> list[Float[Array, "rows_of_part columns_of_part"]]:
    r"""Multiply two matrices in parts, one for each device, as each would compute its own.

    Implements `eq-scaling-rows`, `eq-scaling-columns` and `eq-scaling-summed`; Shoeybi et al. (2020), section 3, for
    the two cuts of the weights; and `eq-scaling-gathered`; Rajbhandari et al. (2020), section 5.3.

    Args:
        x: the rows that are read.
        weight: the matrix that they are multiplied by.
        num_devices: how many equal parts there are.
        cut: what is cut: the `"rows"` of `x`, the `"columns"` of `weight`, or the `"summed"` axis, which is the columns
            of `x` and the rows of `weight`; `"gathered"` for the rows of both, where each device gathers all of
            `weight` before it multiplies.

    Returns:
        The product of each device: some of the rows, some of the columns, or one summand of the whole.

    Raises:
        ValueError: if what is cut does not divide by the number of devices.

    Example:
        >>> x, weight = jnp.ones((4, 6)), jnp.ones((6, 8))
        >>> [part.shape for part in pf.training.cut_product(x, weight, 2, "columns")]
        [(4, 4), (4, 4)]
    """
    for size, axis in _cut_axes(x, weight)[cut]:
        if size % num_devices:
            raise ValueError(
                f"cut is {cut!r}, and {axis} are {size}, which {num_devices} devices cannot share equally; expected a "
                f"multiple of {num_devices}, such as {-(-size // num_devices) * num_devices}."
            )
    xs, weights = [x] * num_devices, [weight] * num_devices
    if cut != "columns":
        xs = jnp.split(x, num_devices, axis=1 if cut == "summed" else 0)
    if cut != "rows":
        weights = jnp.split(weight, num_devices, axis=1 if cut == "columns" else 0)
    if cut == "gathered":
        weights = [jnp.concatenate(weights)] * num_devices
    return [x_part @ weight_part for x_part, weight_part in zip(xs, weights, strict=True)]


def _cut_axes(x, weight) -> dict[str, list[tuple[int, str]]]:
    """The sizes that each cut divides, and what they are called."""
    rows, summed = (len(x), "the rows of x"), (len(weight), "the rows of weight")
    columns, inner = (weight.shape[1], "the columns of weight"), (len(weight), "the columns of x")
    return {"rows": [rows], "columns": [columns], "summed": [inner], "gathered": [rows, summed]}


@checked
def collective_bytes(
    kind: Literal["all-gather", "reduce-scatter", "all-reduce"], num_bytes: Count, num_devices: Positive
) -> float:
    r"""Count the bytes that each device sends around a ring, for an array that has `num_bytes` as a whole.

    Implements `eq-scaling-sent`; Patarasuk and Yuan (2009), who show that, where devices add,
    no all-reduce lets the busiest of them send less.

    >>> pf.training.collective_bytes("all-reduce", num_bytes=64, num_devices=2)
    64.0
    """
    rounds = 2 if kind == "all-reduce" else 1
    return rounds * (num_devices - 1) / num_devices * num_bytes


@checked
def state_bytes(
    num_parameters: Count,
    num_devices: Positive = 1,
    cut_up_to: Literal["nothing", "moments", "gradients", "weights"] = "nothing",
    bytes_per_number: Positive = 4,
) -> float:
    r"""Count the bytes that each device keeps of the weights, their gradients and Adam's two moments.

    Implements `eq-scaling-state`; Rajbhandari et al. (2020), section 5, here with all four in numbers of one size.

    Args:
        num_parameters: how many numbers the model learns.
        num_devices: how many devices share what is cut.
        cut_up_to: what is cut over the devices: `"nothing"`, the `"moments"`, the `"gradients"` as well, or the
            `"weights"` as well, which is called fully sharded.
        bytes_per_number: 4 for float32.

    >>> pf.training.state_bytes(7_000_000_000, num_devices=8, cut_up_to="weights") / 1e9
    14.0
    """
    num_cut = {"nothing": 0, "moments": 2, "gradients": 3, "weights": 4}[cut_up_to]
    return bytes_per_number * num_parameters * ((4 - num_cut) + num_cut / num_devices)


@checked
def least_tokens(
    num_devices: Positive,
    flops_per_second: PositiveFloat,
    bytes_per_second: PositiveFloat,
    bytes_per_number: Positive = 2,
) -> float:
    r"""Return how many tokens each device has to read in a step, so that it computes as long as it sends gradients.

    Implements `eq-scaling-data-pays`; Austin et al. (2025), on training. Counted are the products with weights, 6
    operations for each weight and token, and one all-reduce of all gradients.

    Args:
        num_devices: how many devices share the batch.
        flops_per_second: what one of them computes.
        bytes_per_second: what it sends, in one direction.
        bytes_per_number: of a gradient, as it is sent.
    """
    sent_of_each_weight = collective_bytes("all-reduce", bytes_per_number, num_devices)
    return sent_of_each_weight / bytes_per_second * flops_per_second / 6


@checked
def least_width(
    num_devices: Positive,
    flops_per_second: PositiveFloat,
    bytes_per_second: PositiveFloat,
    bytes_per_number: Positive = 2,
) -> float:
    r"""Return how wide a model has to be, so that a tensor cut of its blocks computes as long as it sends activations.

    Implements `eq-scaling-tensor-pays`; Austin et al. (2025), for a block of $12 D^2$ weights, with four all-reduces of
    its tokens in a step, after Shoeybi et al. (2020), section 3. Arguments as for `least_tokens`.
    """
    sent_of_each_entry = 4 * collective_bytes("all-reduce", bytes_per_number, num_devices)
    return sent_of_each_entry / bytes_per_second * flops_per_second * num_devices / (6 * 12)


@checked
def bubble(num_stages: Positive, num_microbatches: Positive) -> float:
    r"""Return the share of its time in which a device of a pipeline waits.

    Implements `eq-scaling-bubble`; Huang et al. (2019), section 2.3.

    >>> pf.training.bubble(num_stages=4, num_microbatches=12)
    0.2
    """
    return (num_stages - 1) / (num_microbatches + num_stages - 1)
