"""What a function costs: operations, what it keeps for gradients, what devices send."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax

from plainformer.training.scaling import collective_bytes


def count_flops(function: Callable, *args) -> int:
    r"""Count the floating-point operations of the matrix products in `function(*args)`; nothing is computed.

    A multiplication and an addition count as two. JAX lists what it would do, inner functions included. What a
    `jax.lax.scan` repeats counts as often as it is repeated; the body of a `while_loop`, whose number of rounds nobody
    knows beforehand, counts once.

    >>> pf.training.count_flops(jnp.matmul, jnp.ones((5, 3)), jnp.ones((3, 7)))
    210
    """
    program, _, _ = eqx.filter_make_jaxpr(function)(*args)
    return _flops_of(program.jaxpr)


def _flops_of(program) -> int:
    """Count what the matrix products of a traced program take."""
    total = 0
    for step in program.eqns:
        if step.primitive.name == "dot_general":
            (summed_axes, _), _ = step.params["dimension_numbers"]
            summed = math.prod(step.invars[0].aval.shape[axis] for axis in summed_axes)
            total += 2 * summed * math.prod(step.outvars[0].aval.shape)
        rounds = step.params["length"] if step.primitive.name == "scan" else 1
        for inner in jax.tree.leaves(step.params, is_leaf=_is_program):
            total += rounds * _flops_of(getattr(inner, "jaxpr", inner)) if _is_program(inner) else 0
    return total


def _is_program(leaf) -> bool:
    return hasattr(leaf, "eqns") or hasattr(leaf, "jaxpr")


def count_kept_bytes(function: Callable, *args) -> int:
    r"""Count the bytes that `function(*args)` keeps for its gradients, arguments included; nothing is computed.

    Implements `eq-efficiency-kept`. JAX itself says which arrays its backward pass starts from.

    >>> pf.training.count_kept_bytes(jnp.matmul, jnp.ones((5, 3)), jnp.ones((3, 7)))  # both factors, 4 bytes a number
    144
    """
    numbers, rest = eqx.partition((function, args), eqx.is_inexact_array)

    def backward_of(numbers):
        return jax.vjp(lambda numbers: _call(eqx.combine(numbers, rest)), numbers)[1]

    kept = jax.tree.leaves(eqx.filter_eval_shape(backward_of, numbers))
    return sum(array.size * array.dtype.itemsize for array in kept)


def _call(function_and_arguments):
    function, arguments = function_and_arguments
    return eqx.filter(function(*arguments), eqx.is_inexact_array)


class Collective(NamedTuple):
    """What devices send each other in one operation: its kind, the bytes of its result on each device, and how many
    devices share it."""

    kind: str
    num_bytes: int
    group_size: int

    @property
    def sent_bytes(self) -> float:
        """How many bytes each device sends, along a ring (Patarasuk and Yuan, 2009)."""
        if self.kind == "collective-permute":
            return float(self.num_bytes)
        pieces = self.group_size if self.kind == "reduce-scatter" else 1  # the result is one piece of what is summed
        kind: Any = "all-gather" if self.kind == "all-to-all" else self.kind  # each keeps one piece of its own, too
        return collective_bytes(kind, pieces * self.num_bytes, self.group_size)


def collectives(compiled) -> list[Collective]:
    r"""List what the devices of a compiled program send each other, in the order of the program.

    The program's own text is read, as XLA writes it. What a loop repeats is listed once. Of what begins and ends in two
    lines, as on GPUs, the line that begins it is read, which tells operands beside results.

    Args:
        compiled: what `jax.jit(function).lower(*arguments).compile()` returns.

    Raises:
        TypeError: if it is something else.

    Example:
        One device alone sends nothing.

        >>> pf.training.collectives(jax.jit(jnp.sum).lower(jnp.ones(3)).compile())
        []
    """
    if not hasattr(compiled, "as_text"):
        raise TypeError(
            f"compiled is of type {type(compiled).__name__}; expected a compiled program, such as "
            "jax.jit(function).lower(*arguments).compile() returns."
        )
    found = [(match, line) for line in compiled.as_text().splitlines() if (match := SENDS.search(line))]
    return [Collective(match["kind"], _bytes_of(_results(match)), _group_size(line)) for match, line in found]


SENDS = re.compile(
    r" = (?P<results>.*?) (?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)"
    r"(?P<begins>-start)?\("
)


def _results(match: re.Match) -> str:
    """The type of what a collective returns: where a gather only begins, the second of a pair, after its operands."""
    types = match["results"]
    if match["begins"] and match["kind"] != "all-reduce" and types.startswith("("):
        return PART.findall(types[1:-1])[1]
    return types


PART = re.compile(r"\((?:[^()]|\([^()]*\))*\)|\w+\[[\d,]*\]")  # a tuple, or an array
ARRAY = re.compile(r"\b(pred|[a-z]+(\d+)\w*)\[([\d,]*)\]")  # such as f32[16,64]{1,0}


def _bytes_of(results: str) -> int:
    """The bytes of all arrays in the type of a result, such as `(f32[16,64]{1,0}, s32[])`."""
    arrays = ((int(bits or 8), sizes) for _, bits, sizes in ARRAY.findall(results))
    return sum(bits * math.prod(int(size) for size in sizes.split(",") if size) for bits, sizes in arrays) // 8


def _group_size(line: str) -> int:
    """How many devices share a collective: its groups are listed, or counted, or axes of a mesh."""
    if listed := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return len(listed[1].split(","))
    if counted := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(counted[1])
    if mesh := re.search(r"replica_groups=mesh\[(.*?)\].*? \{(.*?)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", mesh[1]))
        return math.prod(int(part or sizes[axis]) for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", mesh[2]))
    return 2  # a collective-permute lists pairs
