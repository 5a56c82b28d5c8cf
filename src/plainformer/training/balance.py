"""Keeping all experts at work: a loss for unequal loads, or a bias that is moved (chapter on modern models)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from plainformer.checks import NonNegative, Positive, PositiveFloat, checked
from plainformer.seeing import look
from plainformer.training.optimiser import told_the_loss


@checked
def expert_load(chosen: Integer[Array, "*batch seq per_token"], num_experts: Positive) -> Float[Array, " experts"]:
    r"""Return which share of all choices falls on each expert.

    Implements `eq-modern-load`; Fedus et al. (2021), equation 5, over all choices of a token.
    """
    return jax.nn.one_hot(chosen.ravel(), num_experts).mean(axis=0)


@checked
def balance_loss(
    weights: Float[Array, "*batch seq experts"], chosen: Integer[Array, "*batch seq per_token"]
) -> Float[Array, ""]:
    r"""Return 1 if all experts are at work equally, and up to their number if one does everything.

    Implements `eq-modern-balance`; Fedus et al. (2021), equations 4 to 6. The load itself has no gradient, as it
    counts; the mean weights have.

    Args:
        weights: what a softmax or a sigmoid made of the router's scores; those of a token are divided by their sum, as
            in equation 19 of DeepSeek-AI (2024).
        chosen: the experts of each token.

    Example:
        Two tokens, two experts: each is chosen once, with a weight of 0.8; then the first token alone.

        >>> weights = jnp.asarray([[0.8, 0.2], [0.2, 0.8]])
        >>> print(pf.training.balance_loss(weights, jnp.asarray([[0], [1]])))
        1.0
        >>> print(pf.training.balance_loss(weights[:1], jnp.asarray([[0]])))
        1.6
    """
    num_experts = weights.shape[-1]
    shares = weights / weights.sum(axis=-1, keepdims=True)
    mean = shares.reshape(-1, num_experts).mean(axis=0)
    return num_experts * (expert_load(chosen, num_experts).astype(mean.dtype) @ mean)


@checked
def balanced(loss_function: Callable, weight: NonNegative = 0.01) -> Callable:
    r"""Return a loss function that adds `weight` times the balance loss, averaged over the blocks that have experts.

    It looks into the model by `pf.look`, so that any loss of any model may be handed over, and `fit` stays as it is;
    `rematerialise` of its configuration does not go with it, and attention by blocks makes its weights a table. Padding
    is routed, too, and counts as other tokens do. The numbers that it measures are `balance`, the balance loss;
    `busiest`, the largest load of an expert in any block, in equal shares; and with a capacity `dropped`, the share of
    the choices for which there was no room.

    For a model with `moved_bias` it also hands `move_bias` the direction: the bias gets the difference of each load
    from an equal share as its gradient, by a term that is zero.

    Args:
        loss_function: from model, batch and random key to a loss, as for `fit`.
        weight: of the balance loss; 0 measures, and changes nothing.

    Raises:
        ValueError: when it is called with a model without experts.

    Example:
        >>> experts = pf.blocks.ExpertsConfig(num_experts=4, per_token=2, width=8)
        >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2, experts=experts)
        >>> decoder = pf.Decoder(pf.DecoderConfig(11, 8, stack), key=jax.random.key(0))
        >>> loss_function = pf.training.balanced(pf.training.next_token_loss)
        >>> windows = pf.data.Windows(jnp.asarray([[1, 2, 3]]), jnp.asarray([[2, 3, 4]]))
        >>> loss, measured = loss_function(decoder, windows)
        >>> sorted(measured)
        ['balance', 'busiest']
    """

    def loss(model, batch, key=None):
        found, seen = look(loss_function, model, batch, key)
        value, measured = found if isinstance(found, tuple) else (found, {})
        routers = [name.removesuffix("chosen") for name in seen if name.endswith("feed_forward.chosen")]
        if not routers:
            raise ValueError("The model has no experts; expected some, as StackConfig(experts=…) makes them.")
        losses = [balance_loss(seen[f"{router}expert_weights"], seen[f"{router}chosen"]) for router in routers]
        balance = jnp.stack(losses).mean()
        loads = [expert_load(seen[f"{router}chosen"], seen[f"{router}expert_weights"].shape[-1]) for router in routers]
        busiest = jnp.stack([load.size * load.max() for load in loads]).max()
        measured = measured | {"balance": balance, "busiest": busiest} | _dropped(seen)
        for router, load in zip(routers, loads, strict=True):
            if (bias := seen.get(f"{router}choice_bias")) is not None:
                direction = (bias @ (load - 1 / load.size).astype(bias.dtype)).astype(value.dtype)
                value = value + direction - jax.lax.stop_gradient(direction)
        return value + weight * balance.astype(value.dtype), measured

    return loss


def _dropped(seen: dict[str, Array]) -> dict[str, Array]:
    """The share of the choices that found no room, if there is a capacity."""
    kept = [array.mean() for name, array in seen.items() if name.endswith("feed_forward.kept")]
    return {"dropped": 1 - jnp.stack(kept).mean()} if kept else {}


@checked
def move_bias(optimiser, rate: PositiveFloat = 1e-3):
    r"""Return an optimiser that moves the bias of each choice against its load, and leaves all else to another.

    Implements `eq-modern-moved-bias`; Wang et al. (2024), algorithm 1. An expert with more than an equal share of the
    choices loses `rate`, one with less gains it, whatever the other optimiser's own rate is. The loss has to be
    `balanced`, which tells the loads.

    Args:
        optimiser: one of optax, such as `make_optimiser(config)`.
        rate: by how much a bias moves in a step.

    Raises:
        TypeError: for what is no optimiser.
    """
    import optax

    optimiser = told_the_loss(optimiser)

    def is_moved(path) -> bool:
        return getattr(path[-1], "name", None) == "choice_bias"

    def update(grads, state, params=None, **extra):
        def rest(path, grad):
            return jnp.zeros_like(grad) if is_moved(path) else grad

        def moved(path, grad, update):
            return -rate * jnp.sign(grad) if is_moved(path) else update

        updates, state = optimiser.update(jax.tree_util.tree_map_with_path(rest, grads), state, params, **extra)
        return jax.tree_util.tree_map_with_path(moved, grads, updates), state

    return optax.GradientTransformationExtraArgs(optimiser.init, update)
