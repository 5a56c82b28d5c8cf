"""What a core can do at best, and what the roofline promises by it for each way of `lab/seconds`, beside the clock."""

import dataclasses
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

import plainformer as pf
from lab.clock import seconds_in_turn
from plainformer.models.accounting import cache_bytes, forward_flops

SIDE, MATRICES = 1024, 64  # the numbers that are summed do not fit into a cache


class Work(NamedTuple):
    """The bytes that a way must fetch or store, and the operations of its matrix products."""

    num_bytes: float
    operations: float

    def times(self, number: float) -> "Work":
        """So many of them, or a part."""
        return Work(self.num_bytes * number, self.operations * number)

    def plus(self, other: "Work") -> "Work":
        """One, then the other."""
        return Work(self.num_bytes + other.num_bytes, self.operations + other.operations)


class Line(NamedTuple):
    """Two ways: what was done, milliseconds before and after, and the work of both."""

    name: str
    before: float
    after: float
    work_before: Work
    work_after: Work


def machine() -> dict[str, float]:
    """Gigabytes per second of a sum, and thousand million operations per second of a product, on one core."""
    many, square = jnp.ones((MATRICES, SIDE, SIDE)), jnp.ones((SIDE, SIDE))
    actions = {"sum": partial(jax.jit(jnp.sum), many), "product": partial(jax.jit(jnp.matmul), square, square)}
    seconds = seconds_in_turn(actions, rounds=15)
    return {
        "gigabytes": round(many.nbytes / seconds["sum"] / 1e9, 2),
        "operations": round(2 * SIDE**3 / seconds["product"] / 1e9, 1),
    }


def milliseconds(work: Work, machine: dict[str, float]) -> float:
    """The least time for a work: that of its bytes, or that of its operations, whichever is longer (Williams, 2009)."""
    return max(work.num_bytes / machine["gigabytes"], work.operations / machine["operations"]) / 1e6


@cache
def weights(config: pf.DecoderConfig) -> int:
    """The bytes of all numbers of a decoder."""
    model = eqx.filter_eval_shape(pf.Decoder, config, key=jax.random.key(0))
    return 4 * pf.count_parameters(model)


def writing(config: pf.DecoderConfig, room: int, rows: int = 1, texts: int = 1) -> Work:
    """A call of a decoder: rows of each of some texts are read, and the whole cache of each text."""
    fetched = weights(config) + texts * cache_bytes(config.stack, room)
    return Work(fetched, texts * forward_flops(config, rows, room))


def speculating(model: pf.DecoderConfig, draft: pf.DecoderConfig, room: int, drafted: int) -> Work:
    """A round: the draft reads one row after the other, its last guess included, and the model all of them at once."""
    rows = drafted + 1
    return writing(draft, room).times(rows).plus(writing(model, room, rows))


def attending(length: int, width: int, blocks: bool) -> Work:
    """Causal attention of one head: all pairs, whose scores and weights are stored and fetched, or half of them."""
    pairs, rows = length**2, 4 * 4 * length * width
    return Work(rows, 2 * width * pairs) if blocks else Work(rows + 4 * 4 * pairs, 4 * width * pairs)


def with_heads(config: pf.DecoderConfig, num_kv_heads: int) -> pf.DecoderConfig:
    """The same decoder with so many heads of keys and values."""
    return dataclasses.replace(config, stack=dataclasses.replace(config.stack, num_kv_heads=num_kv_heads))


def table(lines: Iterator[Line], machine: dict[str, float]) -> str:
    """Milliseconds before and after, by the clock and by the roofline."""
    head = ["", "before", "after", "times as fast", "roofline: before", "after", "times as fast"]
    found = [f"| {' | '.join(head)} |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for name, before, after, *works in lines:
        roofs = [milliseconds(work, machine) for work in works]
        cells = [f"{shown(one)} | {shown(other)} | {one / other:.2f}" for one, other in ((before, after), roofs)]
        found.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(found)


def shown(ms: float) -> str:
    """Milliseconds; as seconds if there are many."""
    return f"{ms:.2f}\N{NO-BREAK SPACE}ms" if ms < 80 else f"{ms / 1e3:.2f}\N{NO-BREAK SPACE}s"
