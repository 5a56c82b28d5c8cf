"""One step of training: loss, gradients, update (chapter 06)."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.training.optimiser import TrainingConfig, learning_rate_schedule, make_optimiser


def make_train_step(loss_function: Callable, static, config: TrainingConfig) -> Callable:
    r"""Return the compiled function that makes one step.

    From `params`, `opt_state`, a batch and the number of steps done it computes the next `params` and `opt_state`,
    which take the place of the old ones in memory, and a dictionary of `loss`, `gradient_norm` (before clipping) and
    `learning_rate`.

    **Arguments** a function from model, batch and random key to a scalar; what of the model is not trained, the second
    part of `eqx.partition(model, eqx.is_inexact_array)`, whose first are `params`; how to train.
    """
    import optax

    optimiser, schedule = make_optimiser(config), learning_rate_schedule(config)
    key = jax.random.key(config.seed)

    def loss_of(params, batch, key):
        if config.precision == "bfloat16":
            params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
        return loss_function(eqx.combine(params, static), batch, key).astype(jnp.float32)

    loss_and_grads = _mean_over_parts(jax.value_and_grad(loss_of), config.accumulation_steps)

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_step(params, opt_state, batch, step):
        loss, grads = loss_and_grads(params, batch, jax.random.fold_in(key, step))
        updates, opt_state = optimiser.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        metrics = {"loss": loss, "gradient_norm": optax.tree.norm(grads), "learning_rate": schedule(step)}
        return params, opt_state, metrics

    return train_step


def _mean_over_parts(loss_and_grads: Callable, accumulation_steps: int) -> Callable:
    """Return a function that does the same to one part of the batch after the other, and returns the means."""
    if accumulation_steps == 1:
        return loss_and_grads

    def accumulated(params, batch, key):
        def add(total, part_and_number):
            part, number = part_and_number
            return jax.tree.map(jnp.add, total, loss_and_grads(params, part, jax.random.fold_in(key, number))), None

        parts = jax.tree.map(partial(_split, parts=accumulation_steps), batch)
        zero = (jnp.zeros((), jnp.float32), jax.tree.map(jnp.zeros_like, params))
        total, _ = jax.lax.scan(add, zero, (parts, jnp.arange(accumulation_steps)))
        return jax.tree.map(lambda leaf: leaf / accumulation_steps, total)

    return accumulated


def _split(array, parts: int):
    if array.shape[0] % parts:
        raise ValueError(f"A batch of {array.shape[0]} cannot be cut into accumulation_steps={parts} equal parts.")
    return array.reshape(parts, array.shape[0] // parts, *array.shape[1:])
