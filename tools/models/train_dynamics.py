"""Train the models of chapter 13 on trajectories of rigid bodies; write them with their card.

There are three runs: one body; bodies that differ by their shape, which the models are not told; and the same bodies
with the shape as a fourth number of every point.
"""

import operator
import time
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from plainformer.data.rigid_body import Trajectories, TrajectorySplits, energy, following_windows, implicit_midpoint
from plainformer.models.dynamics import KINDS, TrajectoryConfig, TrajectoryModels, rollout, window_loss

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
WINDOW, BATCH_SIZE, LEARNING_RATE, DECAY, SEED = 3, 256, 1e-2, 1e-3, 0
LONG = 1000  # steps of the longest rollout
SHAPES, SHAPES_BETWEEN = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), (0.25, 0.35, 0.45, 0.55, 0.65, 0.75)


class Run(NamedTuple):
    """What is learned from, for how long, by how many models, and whether they are told the shape."""

    kappas: tuple[float, ...]
    spacing: float
    num_steps: int
    config: TrajectoryConfig

    @property
    def is_told(self) -> bool:
        """Whether the shape is a fourth number of every point."""
        return self.config.d_model == 4


RUNS = {
    "dynamics": Run((0.5,), 0.01, 16000, TrajectoryConfig()),
    "dynamics_hidden": Run(SHAPES, 0.05, 5000, TrajectoryConfig(num_models=3)),
    "dynamics_told": Run(SHAPES, 0.05, 5000, TrajectoryConfig(d_model=4, num_models=3)),
}


def points_of(trajectories: Trajectories, is_told: bool) -> np.ndarray:
    """What a model reads of each point: its three numbers, and the shape if it is told."""
    states, kappa = trajectories
    shape = np.broadcast_to(kappa[:, None, None], (*states.shape[:2], 1))
    return np.concatenate([states, shape], axis=2) if is_told else states


def windows_of(trajectories: Trajectories, is_told: bool) -> tuple[jax.Array, jax.Array]:
    """Windows, and the windows that follow, in single precision."""
    before, after = following_windows(points_of(trajectories, is_told), WINDOW)
    return jnp.asarray(before, jnp.float32), jnp.asarray(after, jnp.float32)


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(eqx.if_array(0), 0, None, None, None))
def learn(model, key, windows, following, num_steps: int):
    """The model after `num_steps` steps of Adam, and the mean loss of each thousandth of them."""
    parameters, static = eqx.partition(model, eqx.is_array)
    adam = optax.adam(optax.exponential_decay(LEARNING_RATE, num_steps, DECAY))

    def loss(parameters, chosen):
        return window_loss(eqx.combine(parameters, static), (windows[chosen], following[chosen]))

    def step(carry, number):
        parameters, state = carry
        chosen = jax.random.randint(jax.random.fold_in(key, number), (BATCH_SIZE,), 0, len(windows))
        value, slopes = jax.value_and_grad(loss)(parameters, chosen)
        updates, state = adam.update(slopes, state)
        return (optax.apply_updates(parameters, updates), state), value

    (parameters, _), losses = jax.lax.scan(step, (parameters, adam.init(parameters)), jnp.arange(num_steps))
    return eqx.combine(parameters, static), losses.reshape(100, -1).mean(axis=1)


def trained(name: str, run: Run, splits: TrajectorySplits) -> TrajectoryModels:
    """Models of all kinds; each kind is kept under `build/models`, and read from there if it is there."""
    models = TrajectoryModels(run.config, key=jax.random.key(SEED))
    windows, following = windows_of(splits.training, run.is_told)
    keys = jax.random.split(jax.random.key(SEED + 1), run.config.num_models)
    for kind in KINDS:
        kept = ROOT / "build" / "models" / name / f"{kind}.eqx"
        if not kept.exists():
            begin = time.perf_counter()
            found, losses = learn(getattr(models, kind), keys, windows, following, run.num_steps)
            ends = ", ".join(f"{loss**0.5:.1e}" for loss in losses[:, -1])
            print(f"{name} {kind}: {time.perf_counter() - begin:.0f} s, {ends}", flush=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            eqx.tree_serialise_leaves(kept, found)
        found = eqx.tree_deserialise_leaves(kept, getattr(models, kind))
        models = eqx.tree_at(operator.attrgetter(kind), models, found)
    return models


def persistence(window):
    """Predict that nothing moves: the last point, three times."""
    return jnp.broadcast_to(window[..., -1:, :], window.shape)


def with_shape_kept(model):
    """A model that is told the shape, and after each window told it again."""
    return lambda window: model(window).at[..., 3:].set(window[..., 3:])


def measured(model, trajectories: Trajectories, is_told: bool) -> dict[str, float]:
    """How far a model is off after one window and along its rollouts, and how far its invariants drift.

    `window`: root of the mean square over the numbers of all next windows. `error_n`: distance from the true point, at
    most 2, mean of the first n points of all trajectories. `length_n` and `energy_n`: the largest change of an
    invariant along n points, median of the trajectories, since one that is lost would decide a mean.
    """
    before, after = windows_of(trajectories, is_told)
    found = {"window": float(jnp.sqrt(((model(before) - after)[..., :3] ** 2).mean()))}
    kept = with_shape_kept(model) if is_told else model
    start = points_of(trajectories, is_told)[:, :WINDOW]
    run = eqx.filter_jit(lambda window: rollout(kept, window, -(-LONG // WINDOW)))
    points = np.asarray(run(jnp.asarray(start, jnp.float32)), np.float64)[:, :LONG, :3]
    points = np.clip(np.nan_to_num(points, nan=1e6), -1e6, 1e6)
    kappa = trajectories.kappa
    true = implicit_midpoint(start[:, -1, :3], kappa=kappa, num_steps=LONG)[:, 1:]
    distance = np.minimum(np.linalg.norm(points - true, axis=2), 2)
    length = np.abs((points**2).sum(axis=2) - 1)
    energies = np.abs(energy(points, kappa[:, None]) - energy(true[:, :1], kappa[:, None]))
    for steps in (100, LONG):
        found[f"error_{steps}"] = float(distance[:, :steps].mean())
        found[f"length_{steps}"] = float(np.median(length[:, :steps].max(axis=1)))
        found[f"energy_{steps}"] = float(np.median(energies[:, :steps].max(axis=1)))
    return found
