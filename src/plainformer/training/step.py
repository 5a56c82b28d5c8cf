"""One step of training: loss, gradients, update (chapter on the decoder)."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from plainformer.blocks.blocks import Wiring
from plainformer.checks import checked, native
from plainformer.data.named_batches import num_targets
from plainformer.training.arrays import named_arrays, place_of
from plainformer.training.optimiser import TrainingConfig, chosen_optimiser, make_optimiser
from plainformer.training.sharding import Layout, mesh_of

MEASURED = {"step", "loss", "gradient_norm", "learning_rate", "validation_loss"}


@checked
def make_train_step(
    loss_function: Callable,
    static,
    config: TrainingConfig,
    *,
    optimiser=None,
    schedule: Callable | None = None,
    mesh: Mesh | None = None,
    sharding: dict[str, str] | None = None,
) -> Callable:
    r"""Return the compiled function that makes one step.

    From `params`, `opt_state`, a batch and the number of steps done it computes the next `params` and `opt_state`,
    which take the place of the old ones in memory, and a dictionary of `loss`, `gradient_norm` (before clipping),
    `learning_rate` if a schedule says it, and what else the loss function measures.

    Arguments as for `fit`.

    Args:
        static: what of the model is not trained, the second part of `eqx.partition(model, eqx.is_inexact_array)`, whose
            first are `params`.
        mesh, sharding: where `params` and batches lie already, as `fit` lays them.
    """
    import optax

    optimiser, schedule = chosen_optimiser(config, optimiser, schedule)
    key = jax.random.key(config.seed)
    frozen, rest = eqx.partition(static, _is_array)  # handed over, since others would be a part of the program

    def loss_of(params, frozen, batch, key):
        model = eqx.combine(params, frozen, rest)
        model = _in_16_bits(model) if config.precision == "bfloat16" else model
        model = layout.gather(model)
        model = _rematerialised(model, config.rematerialise)
        return _with_measurements(loss_function(model, batch, key))

    layout = Layout(mesh, sharding)
    loss_and_grads = _mean_over_parts(jax.value_and_grad(loss_of, has_aux=True), config.accumulation_steps, layout)

    @partial(_compiled, layout, config)
    def train_step(frozen, params, opt_state, batch, step):
        (loss, measured), grads = loss_and_grads(params, frozen, batch, jax.random.fold_in(key, step))
        updates, opt_state = optimiser.update(grads, opt_state, params, value=loss)
        params, opt_state = layout.place((optax.apply_updates(params, updates), opt_state))
        metrics = {"loss": loss, "gradient_norm": optax.tree.norm(grads), **measured}
        if schedule is not None:
            metrics["learning_rate"] = schedule(step)
        return params, opt_state, metrics

    return partial(train_step, frozen)


@checked
def compile_step(
    model,
    loss_function: Callable,
    batch,
    config: TrainingConfig,
    *,
    trainable: Callable[[str], bool] | None = None,
    mesh: Mesh | None = None,
    sharding: dict[str, str] | None = None,
) -> jax.stages.Compiled:
    r"""Return a step of `fit`, compiled for arrays of these shapes, without making any or training.

    What it takes of each device stands in its `memory_analysis()`, in bytes: the weights and what the optimiser
    remembers in `argument_size_in_bytes`, all that is computed beside them, at most, in `temp_size_in_bytes`. What
    devices send each other is told by `collectives`. Gradients are among what is computed.

    Arguments as for `fit`.

    Args:
        model: as for `fit`, or shapes in the place of its numbers, as `eqx.filter_eval_shape` gives.
        batch: one batch, or `jax.ShapeDtypeStruct` in the place of its arrays; their numbers are not looked at.

    Example:
        >>> model = pf.Decoder(pf.DecoderConfig(40, 64), key=jax.random.key(0))
        >>> ids = jax.ShapeDtypeStruct((16, 64), jnp.int32)
        >>> batch, config = pf.data.Windows(ids, ids), pf.TrainingConfig(num_steps=1)
        >>> step = pf.training.compile_step(model, pf.training.next_token_loss, batch, config)
        >>> step.memory_analysis().argument_size_in_bytes > 12 * pf.count_parameters(model)
        True
    """
    hint = "The loss comes second, before the batch; give what else it takes by functools.partial."
    check_takes(loss_function, "loss_function", "model", "batch", "key", hint=hint)
    model = _to_be_trained(model, batch, mesh)
    params, static = eqx.partition(model, trained_of(model, trainable))
    static = jax.tree.map(lambda leaf: _shape_of(leaf) if eqx.is_array(leaf) else leaf, static)
    layout, params = Layout(mesh, sharding, model), jax.tree.map(_shape_of, params)
    static, *state = layout.place((static, params, jax.eval_shape(make_optimiser(config).init, params)))
    step: Any = make_train_step(loss_function, static, config, mesh=mesh, sharding=sharding)
    batch = layout.place_batch(jax.tree.map(lambda leaf: _shape_of(native(leaf)), batch))
    return step.func.lower(*step.args, *state, batch, 0).compile()


def trained_of(model, trainable: Callable[[str], bool] | None):
    """The model with True in place of each array, or shape of one, that is trained, and False for all else."""

    def chosen(path, leaf) -> bool:
        return _is_trained(leaf) and (trainable is None or bool(trainable(place_of(path))))

    found = jax.tree_util.tree_map_with_path(chosen, model)
    if not any(jax.tree.leaves(found)):
        there = [name for name, array in named_arrays(model).items() if _is_trained(array)]
        raise ValueError(f"Nothing is trained; expected at least one of {there[:5]}{' and more' * (len(there) > 5)}.")
    return found


def check_takes(function, name: str, *arguments: str, hint: str = "") -> None:
    """Raise `TypeError` unless a function can be called with these arguments."""
    with suppress(ValueError):  # of some functions nobody knows which arguments they take
        try:
            inspect.signature(function).bind(*arguments)
        except TypeError as error:
            raise TypeError(
                f"{name} takes other arguments than ({', '.join(arguments)}): {error}. {hint}".rstrip()
            ) from None


def _is_trained(leaf) -> bool:
    return jnp.issubdtype(getattr(leaf, "dtype", bool), jnp.inexact)


def _is_array(leaf) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _shape_of(leaf):
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") else leaf


def _to_be_trained(model, batch, mesh: Mesh | None):
    """The model; raise for one that cannot be trained, or where batches are given in place of one."""
    if callable(batch) or isinstance(batch, Iterator):
        what = f"batch is of type {type(batch).__name__}"
        raise TypeError(f"{what}; expected one batch, such as batches(0) or next(batches).")
    model = jax.tree.map(native, model)
    if isinstance(model, type) or not any(map(_is_trained, jax.tree.leaves(model))):
        what = f"model is of type {type(model).__name__}, without numbers to train"
        raise TypeError(f"{what}; expected one as fit takes it.")
    if mesh is None and (there := mesh_of(model)) is not None:
        raise ValueError(f"model lies on {there.size} devices of a mesh, and mesh is None; expected mesh=…, too.")
    return model


def _in_16_bits(model):
    return jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16) if eqx.is_inexact_array(leaf) else leaf, model)


# What gradients keep of what happens within a block: nothing, or what matrices of weights give.
KEPT = {"blocks": None, "all but products": jax.checkpoint_policies.dots_with_no_batch_dims_saveable}


class _ComputedAnew(eqx.Module):
    """A block of which gradients keep what enters it, and what a policy of JAX names."""

    block: Wiring
    kept: Callable | None = eqx.field(static=True)

    def __call__(self, *args, **options):
        return eqx.filter_checkpoint(self.block, policy=self.kept)(*args, **options)


def _rematerialised(model, what: str):
    """The model with its blocks computed anew where gradients need what is within."""

    def is_block(part) -> bool:
        return isinstance(part, Wiring)

    if what == "nothing":
        return model
    return jax.tree.map(
        lambda part: _ComputedAnew(part, KEPT[what]) if is_block(part) else part, model, is_leaf=is_block
    )


def _compiled(layout: Layout, config: TrainingConfig, function: Callable) -> Callable:
    """A step compiled, whose results lie where parameters and memory of the optimiser lay.

    What it computes anew is not merged with the first time, as XLA's compiler for processors would.
    """
    within = layout.jit(function, donate_argnums=(1, 2))
    if config.rematerialise == "nothing" or jax.default_backend() != "cpu":
        return within
    options = {"xla_disable_hlo_passes": "cse_barrier_expander"}
    alone = layout.jit(function, donate_argnums=(1, 2), compiler_options=options)

    @wraps(function)
    def call(*args):
        is_traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(args))
        return (within if is_traced else alone)(*args)  # a part of another program takes its options

    known: Any = call
    known.lower = alone.lower
    return known


def _with_measurements(found):
    """The loss, in 32 bits, and a dictionary of what else a loss function has measured."""
    loss, measured = found if isinstance(found, tuple) and len(found) == 2 else (found, {})
    if not jnp.issubdtype(getattr(loss, "dtype", type(loss)), jnp.floating):
        expected = "expected a single number, or (number, a dictionary of single numbers). Return the mean loss."
        raise TypeError(f"The loss is of type {getattr(loss, 'dtype', type(loss).__name__)}; {expected}")
    if jnp.shape(loss) != ():
        raise ValueError(f"The loss has shape {jnp.shape(loss)}; expected a single number. Take its mean.")
    if not isinstance(measured, dict) or any(jnp.shape(number) != () for number in measured.values()):
        raise TypeError("The loss function returned more than a loss; expected (loss, a dictionary of single numbers).")
    if taken := sorted(MEASURED & measured.keys()):
        raise ValueError(
            f"The loss function returned {taken[0]!r}, which training itself measures; choose another name."
        )
    return jnp.asarray(loss, jnp.float32), {name: jnp.asarray(number, jnp.float32) for name, number in measured.items()}


def _mean_over_parts(loss_and_grads: Callable, accumulation_steps: int, layout: Layout) -> Callable:
    """Return a function that does the same to one part of the batch after the other, and returns the means.

    A part weighs as much as it has targets that count, so that these are the means over all targets of the batch.
    """
    if accumulation_steps == 1:
        return loss_and_grads

    def accumulated(params, frozen, batch, key):
        def add(total, part_and_share):
            number, part, share = part_and_share
            found = loss_and_grads(params, frozen, part, jax.random.fold_in(key, number))
            return jax.tree.map(partial(_add_share, share), total, found), None

        parts = layout.place_batch(jax.tree.map(partial(_split, parts=accumulation_steps), batch), before=1)
        counts = jax.vmap(num_targets)(parts)
        shares = counts / jnp.where(counts.sum() > 0, counts.sum(), 1)
        shapes = jax.eval_shape(loss_and_grads, params, frozen, jax.tree.map(lambda array: array[0], parts), key)
        zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        means, _ = jax.lax.scan(add, zero, (jnp.arange(accumulation_steps), parts, shares))
        return means

    return accumulated


def _add_share(share, total, mean):
    """A mean over nothing, which may be NaN, adds nothing."""
    return total + jnp.where(share > 0, share.astype(mean.dtype) * mean, 0)


def _split(array, parts: int):
    if not jnp.ndim(array):
        raise ValueError(
            f"A batch holds a single number, which cannot be cut into accumulation_steps={parts} equal parts; expected "
            "arrays whose first axis is the batch."
        )
    if array.shape[0] % parts:
        raise ValueError(f"A batch of {array.shape[0]} cannot be cut into accumulation_steps={parts} equal parts.")
    return array.reshape(parts, array.shape[0] // parts, *array.shape[1:])
