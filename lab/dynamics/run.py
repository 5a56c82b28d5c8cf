"""Train models on trajectories of rigid bodies.

One body on one sphere, as in the source, and bodies of several angular momenta, each with a short training and a long
one; bodies that differ by their shape, which the models are not told; and the same with the shape as a fourth number of
every point. What the models do is measured by `lab/drifts`.
"""

import json
import time
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.dynamics import columns
from lab.records import BUILD, LAB
from plainformer.data.rigid_body import Trajectories, TrajectorySplits, following_windows, rigid_bodies
from plainformer.models.dynamics import KINDS, TrajectoryConfig, TrajectoryModels

KEPT = BUILD
WINDOW, BATCH_SIZE, DECAY, SEED = 3, 64, 1e-3, 0
SHORT, LONG = 40_000, 400_000
RATES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
SHAPES, SHAPES_BETWEEN = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), (0.25, 0.35, 0.45, 0.55, 0.65, 0.75)
LENGTHS, LENGTHS_BETWEEN = (0.8, 0.9, 1.0, 1.1, 1.2), (0.85, 0.95, 1.05, 1.15)
WORDS = {
    "volume_preserving": "transformer that keeps volumes",
    "network": "triangular layers alone: volumes are kept",
    "residual": "residual layers alone: volumes are not kept",
    "standard": "standard transformer of the source",
    "ordinary": "ordinary transformer blocks",
    "turning": "a turn of each point: lengths are kept",
    "placed": "transformer that keeps volumes, with places",
}


class Run(NamedTuple):
    """What is learned from, for how long, by which models."""

    num_steps: int
    kappas: tuple[float, ...] = (0.5,)
    lengths: tuple[float, ...] = (1.0,)
    spacing: float = 0.01
    config: TrajectoryConfig = TrajectoryConfig()

    @property
    def is_told(self) -> bool:
        """Whether the shape is a fourth number of every point."""
        return self.config.d_model == 4

    def splits(self) -> TrajectorySplits:
        """The trajectories to learn from, to choose by and, where lengths and shapes are those of training, to test."""
        return rigid_bodies(self.kappas, spacing=self.spacing, lengths=self.lengths)

    def tested(self) -> Trajectories:
        """The trajectories of the test: other angles, and, where there are several, other lengths and shapes."""
        kappas = SHAPES_BETWEEN if len(self.kappas) > 1 else self.kappas
        lengths = LENGTHS_BETWEEN if len(self.lengths) > 1 else self.lengths
        return rigid_bodies(kappas, spacing=self.spacing, lengths=lengths).test


DEEP = {"num_blocks": 16, "num_layers": 1, "num_layers_alone": 32, "num_models": 3}
RUNS = {
    "dynamics_short": Run(SHORT),
    "dynamics": Run(LONG),
    "dynamics_lengths_short": Run(SHORT, lengths=LENGTHS, spacing=0.05),
    "dynamics_lengths": Run(LONG, lengths=LENGTHS, spacing=0.05),
    "dynamics_hidden": Run(LONG, SHAPES, spacing=0.05, config=TrajectoryConfig(**DEEP)),
    "dynamics_told": Run(SHORT, SHAPES, spacing=0.05, config=TrajectoryConfig(d_model=4, **DEEP)),
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


def column_loss(model, windows, following):
    """The mean squared error of windows in columns, `(features, points, windows)`."""
    return ((columns.applied(model, windows) - following) ** 2).mean()


def descended(model, key, rate, loss: Callable, num_windows: int, num_steps: int):
    """The model after steps of Adam, and the loss before each; `loss` is of a model and the numbers of some windows."""
    parameters, static = eqx.partition(model, eqx.is_array)
    adam = optax.adam(optax.exponential_decay(1.0, num_steps, DECAY))

    def step(carry, number):
        parameters, state = carry
        chosen = jax.random.randint(jax.random.fold_in(key, number), (BATCH_SIZE,), 0, num_windows)
        value, slopes = jax.value_and_grad(lambda each: loss(eqx.combine(each, static), chosen))(parameters)
        updates, state = adam.update(slopes, state)
        updates = jax.tree.map(lambda update: rate * update, updates)
        return (optax.apply_updates(parameters, updates), state), value

    (parameters, _), losses = jax.lax.scan(step, (parameters, adam.init(parameters)), jnp.arange(num_steps))
    return eqx.combine(parameters, static), losses


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(eqx.if_array(0), 0, 0, None, None, None))
def learn(model, key, rate, windows, following, num_steps: int):
    """The model after `num_steps` steps of Adam, and the mean loss of each hundredth of them."""

    def loss(model, chosen):
        return column_loss(model, windows[..., chosen], following[..., chosen])

    model, losses = descended(model, key, rate, loss, windows.shape[-1], num_steps)
    return model, losses.reshape(100, -1).mean(axis=1)


def in_columns(trajectories: Trajectories, is_told: bool) -> list[jax.Array]:
    """Windows and those that follow, `(features, points, windows)`."""
    return [jnp.transpose(each, (2, 1, 0)) for each in windows_of(trajectories, is_told)]


def errors_by_rate(kind: str) -> list[float]:
    """The window error on the validation trajectories after a short training with each learning rate."""
    kept = KEPT / "dynamics_rates" / f"{kind}.json"
    if not kept.exists():
        splits, number = rigid_bodies(), len(RATES)
        keys = jnp.stack([jax.random.key(SEED)] * number)
        models = eqx.filter_vmap(lambda key: KINDS[kind](TrajectoryConfig(), key=key))(keys)
        models, _ = learn(models, keys, jnp.asarray(RATES), *in_columns(splits.training, False), SHORT)
        before, after = in_columns(splits.validation, False)
        found = eqx.filter_vmap(lambda model: column_loss(model, before, after) ** 0.5)(models)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([float(f"{error:.2g}") for error in found]), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def rate_of(kind: str, run: Run) -> float:
    """The learning rate with the lowest of these errors; half of it for long or deep trainings, which else lose models.

    Turns need an eighth of it for a long training: with half of it they end where short ones have been better.
    The deep transformer with places is stuck with half of it, and learns with a quarter.
    """
    best = RATES[int(np.argmin(errors_by_rate(kind)))]
    is_deep = run.config.num_blocks > TrajectoryConfig().num_blocks
    if run.num_steps <= SHORT and (kind == "turning" or not is_deep):
        return best
    if kind == "turning":
        return best / 8
    return best / 4 if kind == "placed" and is_deep else best / 2


def trained(name: str, run: Run, rate=rate_of) -> TrajectoryModels:
    """Models of all kinds; each kind is kept under `build/models`, and read from there if it is there."""
    models, number = TrajectoryModels(run.config, key=jax.random.key(SEED)), run.config.num_models
    windows, following = in_columns(run.splits().training, run.is_told)
    keys = jax.random.split(jax.random.key(SEED + 1), number)
    for kind in KINDS:
        kept = KEPT / name / f"{kind}.eqx"
        if not kept.exists():
            begin, rates = time.perf_counter(), jnp.full(number, rate(kind, run))
            found, losses = learn(models.kinds[kind], keys, rates, windows, following, run.num_steps)
            ends = ", ".join(f"{loss**0.5:.1e}" for loss in losses[:, -1])
            print(f"{name} {kind}: {time.perf_counter() - begin:.0f} s, {ends}", flush=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            eqx.tree_serialise_leaves(kept, found)
        models.kinds[kind] = eqx.tree_deserialise_leaves(kept, models.kinds[kind])
    return models


def count_of(kind: str, run: Run) -> int:
    """How many parameters a model of a kind has."""
    return pf.count_parameters(eqx.filter_eval_shape(lambda: KINDS[kind](run.config, key=jax.random.key(0))))


def results() -> dict:
    """Train all runs, and return the sizes of their models, and what was tried to find their rates."""
    for name, run in RUNS.items():
        pf.save_model(LAB / "dynamics" / f"{name}.safetensors", trained(name, run))
    kinds = {
        kind: {
            "parameters": {
                name: count_of(kind, RUNS[name]) for name in ("dynamics", "dynamics_hidden", "dynamics_told")
            },
            "errors": dict(zip(map(str, RATES), errors_by_rate(kind), strict=True)),
            "rate": rate_of(kind, RUNS["dynamics_short"]),
        }
        for kind in WORDS
    }
    windows = {name: len(windows_of(run.splits().training, run.is_told)[0]) for name, run in RUNS.items()}
    return {"windows": windows, "kinds": kinds}


def passes(name: str, found: dict) -> float:
    """How often a run reads each window."""
    return RUNS[name].num_steps * BATCH_SIZE / found["windows"][name]


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: the parameters of a model for one body."""
    return {f"{kind}.parameters": f"{each['parameters']['dynamics']:,}" for kind, each in found["kinds"].items()}


def card(found: dict) -> str:
    """What was done."""
    rows = []
    for kind, each in found["kinds"].items():
        counts = [f"{count:,}" for count in each["parameters"].values()]
        errors = [f"{error:.2g}" for error in each["errors"].values()]
        rows.append(f"| {' | '.join([WORDS[kind], *counts, *errors, format(each['rate'], 'g')])} |")
    return f"""# The models of rigid bodies

They predict how a rigid body turns: from three points, the three that follow. Each file holds several models of seven
kinds, which differ by their first weights and batches. What they do stands in `lab/drifts`.

- **Data.** `plainformer.data.rigid_body.rigid_bodies()`, made by the implicit midpoint rule with steps of 0.2.
  `dynamics` and `dynamics_short`: 992 trajectories of 101 points to train on, 124 for validation, 122 for the test, all
  on one sphere, as in the source. `dynamics_lengths` and `dynamics_lengths_short`: angular momenta of length
  {", ".join(map(str, LENGTHS))}, angles 0.05 apart; the test has other angles and the lengths
  {", ".join(map(str, LENGTHS_BETWEEN))}. `dynamics_hidden` and `dynamics_told`: seven shapes, kappa
  {", ".join(map(str, SHAPES))}; the test has other angles and six shapes between; those of `dynamics_told` read kappa
  as a fourth number of every point.
- **Training.** {SHORT:,} steps of {BATCH_SIZE} windows for those called short and those that are told the shape,
  {LONG:,} for the others; five models of a kind, for several shapes three. Adam, mean squared error. The learning rate
  is the best one of the table, in long and deep trainings half of it, since with the best one of five long trainings of
  the transformer that keeps volumes was lost; in long trainings the turns have an eighth, since with half of
  it or all of it all five ended at a window error of 0.0003, and the deep transformer with places has a quarter, since
  with half of it all three were stuck at 0.025. It falls exponentially to a thousandth. All settings stand in
  `lab/dynamics/run.py`; `make models ONLY=dynamics` trains them again.
- **Models and rates.** Parameters of a model for one body, for several shapes, and with the shape told; root mean
  square error of a number of the next window on the validation trajectories of one sphere, after {SHORT:,} steps with
  each learning rate, one seed; and the rate that was taken.

| kind | parameters | several shapes | told | {" | ".join(f"rate {rate:g}" for rate in RATES)} | taken |
|---|---|---|---|{"---|" * len(RATES)}---|
{chr(10).join(rows)}

- **Licence.** The weights are Apache-2.0, as the code.
"""
