"""How weights are changed since 2017: Muon for matrices, schedules that need no end (chapter on recipes)."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp

from plainformer.blocks.blocks import Wiring
from plainformer.checks import Kind, Natural, NonNegative, Number, PositiveFloat, check_each, checked
from plainformer.tokens.tokens import TokenEmbedding

Share = Annotated[float, Number(lambda share: 0 <= share < 1, "at least 0 and below 1, such as 0.95")]
OPTAX = Kind(
    lambda given: hasattr(given, "init") and hasattr(given, "update"), "one of optax, such as optax.adamw(1e-3)"
)
Optimiser = Annotated[Any, OPTAX]
LIKE_ADAM = 0.2  # about the root mean square of a step of Adam that is measured in learning rates


@checked
def hidden_matrices(tree):
    r"""Return a tree with `True` in place of each hidden matrix, and `False` for every other array.

    Hidden are the matrices within blocks, those of experts side by side among them; embedding, output and all vectors
    are not. In a model without blocks all matrices are, but for those of a `TokenEmbedding` and for tables.

    Args:
        tree: a model, its `params`, or a tree like them, such as their gradients. As a mask for optax, hand over the
            function itself.

    Example:
        In a decoder, queries come from a hidden matrix.

        >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
        >>> decoder = pf.Decoder(pf.DecoderConfig(40, 8, stack=stack), key=jax.random.key(0))
        >>> hidden = pf.training.hidden_matrices(decoder)
        >>> hidden.stack.blocks[0].attention.query.weight, hidden.embedding.weight
        (True, False)
    """
    has_blocks = any(isinstance(part, Wiring) for part in jax.tree.leaves(tree, is_leaf=_is_part))

    def within(part):
        is_hidden = isinstance(part, Wiring) if has_blocks else not isinstance(part, TokenEmbedding)
        return jax.tree_util.tree_map_with_path(lambda path, leaf: is_hidden and _is_weight(path, leaf), part)

    return jax.tree.map(within, tree, is_leaf=_is_part)


def _is_part(part) -> bool:
    """Whether a part of a model is judged as a whole."""
    return isinstance(part, Wiring | TokenEmbedding)


def _is_weight(path, leaf) -> bool:
    """Whether an array is a matrix, or several side by side: no biases of experts, and no table of positions."""
    return leaf.ndim >= 2 and getattr(path[-1] if path else None, "name", None) not in ("bias", "table")


@checked
def muon(
    learning_rate: PositiveFloat | Callable,
    *,
    momentum: Share = 0.95,
    weight_decay: NonNegative = 0.0,
    decays: Callable | None = None,
    hidden: Callable = hidden_matrices,
    others: Optimiser,
):
    r"""Return an optimiser that moves hidden matrices by Muon, and leaves all other arrays to another one.

    Implements `eq-recipes-muon`, with the polynomial `eq-recipes-newton-schulz`; Jordan et al. (2024), and for the
    factor by the shape Liu et al. (2025), section 2.2. A step of a matrix is about as large as one of Adam, so that one
    learning rate does for both. Of a matrix one running mean is kept, where Adam keeps two.

    Args:
        learning_rate: a number, or a schedule, such as `learning_rate_schedule(config)`.
        momentum: how much of the running mean of gradients is kept in a step.
        weight_decay: of these matrices, times the learning rate.
        decays: on which of them it falls, a function from `params` to a tree of `True` and `False`; `None` for all.
        hidden: which arrays Muon takes, a function from `params` to a tree of `True` and `False`. Of those with
            more than two axes, the last two are those of a matrix.
        others: the optimiser of all other arrays, one of optax, such as `optax.adamw(1e-3)`.
    """
    import optax

    if not callable(learning_rate):
        check_each(PositiveFloat, learning_rate=learning_rate)

    def axes(params):
        return jax.tree.map(lambda leaf: optax.contrib.MuonDimensionNumbers(leaf.ndim - 2, leaf.ndim - 1), params)

    matrices = optax.contrib.muon(
        learning_rate,
        beta=momentum,
        weight_decay=weight_decay,
        weight_decay_mask=decays,
        consistent_rms=LIKE_ADAM,
        muon_weight_dimension_numbers=axes,
    )
    by_name = {"muon": matrices, "others": others}
    both = optax.partition(by_name, lambda params: jax.tree.map(_name_of, hidden(params)))
    return optax.GradientTransformationExtraArgs(both.init, promoting(both.update))


def _name_of(is_hidden: bool) -> str:
    return "muon" if is_hidden else "others"


@checked
def endless_schedule(
    learning_rate: PositiveFloat, warmup_steps: Natural, shape: Literal["constant", "inverse_sqrt"] = "constant"
) -> Callable:
    r"""Return a schedule that need not know when the training ends: after a linear rise, level or falling ever slower.

    Implements `eq-recipes-inverse-sqrt`; Vaswani et al. (2017), equation 3, there with the largest rate bound to the
    width.

    Args:
        learning_rate: the largest, reached after `warmup_steps`.
        warmup_steps: how many steps the rise takes.
        shape: `"constant"` to stay there, `"inverse_sqrt"` to fall as the root of the number of steps grows.

    Returns:
        The function from the number of steps done to the learning rate of the next.

    Example:
        With four times the steps the rate is half as large.

        >>> learning_rate = pf.training.endless_schedule(0.01, 24, "inverse_sqrt")
        >>> [round(float(learning_rate(step)), 4) for step in (0, 24, 99, 399)]
        [0.0004, 0.01, 0.005, 0.0025]
    """
    import optax

    def falling(step):
        return learning_rate * jnp.sqrt((warmup_steps + 1) / (step + warmup_steps + 1))

    rise = optax.linear_schedule(learning_rate / (warmup_steps + 1), learning_rate, warmup_steps)
    after = falling if shape == "inverse_sqrt" else optax.constant_schedule(learning_rate)
    return promoting(optax.join_schedules([rise, after], [warmup_steps]))


@checked
def with_decay(schedule: Callable, num_steps: Natural, decay_steps: Natural, end_value: NonNegative = 0.0) -> Callable:
    r"""Return a schedule that falls along a straight line in the last steps.

    Implements `eq-recipes-wsd` for a schedule that is level; Hu et al. (2024), section 4.2, with a line for their
    exponential.

    Args:
        schedule: from the number of steps done to the learning rate, such as `endless_schedule(0.01, 100)`.
        num_steps: after how many steps the training ends.
        decay_steps: how many of these the fall takes.
        end_value: what share of the rate is left at the end.

    Raises:
        ValueError: if the fall takes more steps than there are.
    """
    import optax

    if decay_steps > num_steps:
        raise ValueError(f"decay_steps is {decay_steps}; expected at most num_steps={num_steps}.")
    if not decay_steps:
        return schedule
    share = optax.linear_schedule(1.0, end_value, decay_steps, transition_begin=num_steps - decay_steps)
    return promoting(lambda step: schedule(step) * share(step))


def promoting(function: Callable) -> Callable:
    """optax multiplies counts by floats: allow it there, even if JAX is set to refuse such mixtures."""

    @wraps(function)
    def allowed(*args, **kwargs):
        with jax.numpy_dtype_promotion("standard"):
            return function(*args, **kwargs)

    return allowed
