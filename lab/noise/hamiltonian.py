"""A network that learns the energy of a turning body, and steps with the implicit midpoint rule.

Greydanus, Dzamba and Yosinski (2019) learn an energy and move by its slopes. Here the motion is y × the slope, which
keeps the length of y whatever the energy is: the network is told that, and the rule that made the data.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.drifts.run import measured, window_error
from lab.dynamics.run import RUNS, WINDOW, descended, windows_of
from lab.records import BUILD, kept
from plainformer.data.rigid_body import STEP
from plainformer.models.dynamics import window_loss
from plainformer.tokens.tokens import Linear

KEPT = BUILD / "noise"
WIDTH, ITERATIONS = 16, 6  # numbers in each inner layer; how often the midpoint is computed anew
RATES, SHORT, LONG, SEEDS = (0.01, 0.02, 0.04, 0.08, 0.16), 2000, 20_000, (0, 1, 2)
DATA = ("dynamics", "dynamics_lengths")


class LearnedEnergy(eqx.Module):
    """A number for each state, by two layers with tanh; and the three points that follow a window's last."""

    layers: tuple[Linear, ...]

    def __init__(self, width: int, *, key):
        sizes, keys = (3, width, width, 1), jax.random.split(key, 3)
        self.layers = tuple(Linear(a, b, key=each) for a, b, each in zip(sizes, sizes[1:], keys, strict=False))

    def energy(self, y):
        """The learned energy of each state, `(…,)`."""
        for layer in self.layers[:-1]:
            y = jnp.tanh(layer(y))
        return self.layers[-1](y)[..., 0]

    def velocity(self, y):
        """y × the slope of the energy: `eq-dynamics-rigid-body`, if the energy is that of the body."""
        return jnp.cross(y, jax.grad(lambda y: self.energy(y).sum())(y))

    def __call__(self, windows):
        """The points after each window, `(…, 3, 3)`, by `eq-dynamics-midpoint` with a fixed number of iterations."""
        points, y = [], windows[..., -1, :]
        for _ in range(WINDOW):
            middle = y
            for _ in range(ITERATIONS):
                middle = y + STEP / 2 * self.velocity(middle)
            y = 2 * middle - y
            points.append(y)
        return jnp.stack(points, axis=-2)


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(eqx.if_array(0), 0, 0, None, None, None))
def learn(model, key, rate, before, after, num_steps: int):
    """The model after `num_steps` steps of Adam, as in `lab/dynamics`."""
    return descended(
        model, key, rate, lambda model, at: window_loss(model, (before[at], after[at])), len(before), num_steps
    )[0]


def learned(data: str, each: list[tuple[int, float]], num_steps: int) -> Any:
    """Energies for each seed and rate, side by side."""
    keys = jnp.stack([jax.random.key(seed) for seed, _ in each])
    models = eqx.filter_vmap(lambda key: LearnedEnergy(WIDTH, key=key))(keys)
    rates = jnp.asarray([rate for _, rate in each])
    return learn(models, keys, rates, *windows_of(RUNS[data].splits().training, False), num_steps)


def one(models, number: int) -> LearnedEnergy:
    """One of several that lie side by side."""
    return jax.tree.map(lambda leaf: leaf[number], models)


def by_rate(data: str) -> list[float]:
    """The window error on validation windows after a short training with each rate."""
    models = learned(data, [(0, rate) for rate in RATES], SHORT)
    held_out = windows_of(RUNS[data].splits().validation, False)
    return [float(f"{float(window_error(one(models, n), *held_out)):.3g}") for n in range(len(RATES))]


def of_data(data: str) -> dict:
    """What is measured of three energies, each learned with the best rate, as `lab/drifts` measures."""
    tried = kept(KEPT / f"energy_{data}_rates.json", lambda: by_rate(data))
    rate = RATES[int(np.argmin(tried))]

    def found() -> list[dict]:
        models = learned(data, [(seed, rate) for seed in SEEDS], LONG)
        return [measured(one(models, seed), RUNS[data].tested()) for seed in SEEDS]

    return {
        "tried": dict(zip(map(str, RATES), tried, strict=True)),
        "rate": rate,
        "models": kept(KEPT / f"energy_{data}.json", found),
    }


def energies() -> dict:
    """Learned energies on one sphere and on several lengths."""
    count = pf.count_parameters(LearnedEnergy(WIDTH, key=jax.random.key(0)))
    return {"parameters": count, "steps": LONG} | {data: of_data(data) for data in DATA}
