"""What a function costs: operations of matrix products, and what it keeps for gradients (chapters 07, 08, 10, 12)."""

import math
from collections.abc import Callable

import equinox as eqx
import jax


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
