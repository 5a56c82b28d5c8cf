"""What a model costs: its learned numbers, and the operations that it takes (chapters 04, 06 and 07)."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.checks import Count, Positive, checked
from plainformer.models.decoder import Decoder, DecoderConfig


def count_parameters(module) -> int:
    r"""Count the learned numbers of a module, or of any tree of arrays: the entries of all its floating-point arrays.

    Implements `eq-blocks-parameters`. Shapes are enough: `eqx.filter_eval_shape` gives a module without its numbers.
    """
    leaves = jax.tree.leaves(module)
    arrays = [leaf for leaf in leaves if hasattr(leaf, "dtype")]
    if module is None or (leaves and not arrays and not isinstance(module, eqx.Module)):
        raise TypeError(f"module is of type {type(module).__name__}; expected a module, or a tree of arrays.")
    return sum(array.size for array in arrays if jnp.issubdtype(array.dtype, jnp.inexact))


def count_flops(function: Callable, *args) -> int:
    r"""Count the floating-point operations of the matrix products in `function(*args)`; nothing is computed.

    A multiplication and an addition count as two. JAX lists what it would do, inner functions included. What a
    `jax.lax.scan` repeats counts as often as it is repeated; the body of a `while_loop`, whose number of rounds nobody
    knows beforehand, counts once.

    >>> pf.count_flops(jnp.matmul, jnp.ones((5, 3)), jnp.ones((3, 7)))
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


@checked
def training_flops(config: DecoderConfig, num_tokens: Count, seq_len: Positive | None = None) -> int:
    r"""Count the floating-point operations of training on `num_tokens` tokens, in texts of `seq_len`.

    Implements `eq-decoder-flops`; Kaplan et al. (2020), section 2.1, who leave out the output and, in the end, the
    attention. A multiplication and an addition count as two. Only matrix products are counted: 2 for each weight and
    each token forward; for scores and weighted averages, 4 for each column and each of `seq_len` keys, hidden ones
    included, since they are computed; and twice as much backward as forward. `num_tokens` is batch times length times
    steps; without a length, texts are as long as `context_len`.
    """
    seq_len = config.context_len if seq_len is None else seq_len
    model = eqx.filter_eval_shape(lambda key: Decoder(config, key=key), jax.random.key(0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(model.stack.blocks) if getattr(leaf, "ndim", 0) == 2)
    products = weights + config.stack.d_model * config.vocab_size
    widths = config.stack.num_heads * (config.stack.key_width + config.stack.value_width)
    attention = config.stack.num_layers * widths * seq_len
    return 3 * 2 * num_tokens * (products + attention)
