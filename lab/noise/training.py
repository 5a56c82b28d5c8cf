"""How networks learn from noisy windows: many side by side, each with its own noise, rate and seed.

Every step draws its windows anew, and measures them anew. The rate falls to zero along a cosine.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.dynamics.run import BATCH_SIZE
from lab.noise.networks import applied
from lab.noise.opponents import TEST_SEED, VALIDATION_SEED
from lab.noise.tasks import Task, asked, error, measured
from lab.records import BUILD, kept

KEPT, PARTS, SEEDS = BUILD / "noise", 10, (0, 1, 2)


class Plan(NamedTuple):
    """A kind of network, the rates to choose from, for how many steps it learns, and from which noises."""

    make: Callable  # of seeds: the networks before they learn, side by side
    rates: tuple[float, ...]
    num_steps: int
    noises: tuple[float, ...]
    search: tuple[float, ...]  # the noises for which the rate is searched; others take that of the nearest of them
    seeds: tuple[int, ...] = SEEDS


def in_columns(windows):
    """Windows `(windows, points, 3)` as `(3, points, windows)`."""
    return jnp.transpose(jnp.asarray(windows, jnp.float32), (2, 1, 0))


def loss(model, windows, seq: int):
    """The mean squared error on windows in columns, of which `seq` points are read."""
    return ((applied(model, windows[:, :seq]) - windows[:, seq:]) ** 2).mean()


def batch(training, sigma, key):
    """Windows drawn at random and measured, `(3, points, windows)`: those that are read and those that follow."""
    places, noise = jax.random.split(key)
    chosen = training[jax.random.randint(places, (BATCH_SIZE,), 0, len(training))]
    return in_columns(measured(chosen, sigma, noise))


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(eqx.if_array(0), 0, 0, 0, None, None, None))
def learn(model, key, rate, sigma, training, validation, settings: tuple[int, int]):
    """The model after its steps, and its error on the validation windows after each part of them.

    `training`: true windows, `(windows, points, 3)`; `validation`: true windows, of which the read points are measured.
    """
    num_steps, seq = settings
    parameters, static = eqx.partition(model, eqx.is_array)
    adam = optax.adam(optax.cosine_decay_schedule(1.0, num_steps))

    def noisy_loss(parameters, windows):
        return loss(eqx.combine(parameters, static), windows, seq)

    def step(carry, number):
        parameters, state = carry
        slopes = jax.grad(noisy_loss)(parameters, batch(training, sigma, jax.random.fold_in(key, number)))
        updates, state = adam.update(slopes, state)
        updates = jax.tree.map(lambda update: rate * update, updates)
        return (optax.apply_updates(parameters, updates), state), None

    read = measured(validation[:, :seq], sigma, jax.random.key(VALIDATION_SEED))

    def part(carry, number):
        carry, _ = jax.lax.scan(step, carry, number * (num_steps // PARTS) + jnp.arange(num_steps // PARTS))
        # in rows: of thousands of windows in columns XLA's programs for processors have made wrong numbers
        missed = eqx.combine(carry[0], static)(read) - validation[:, seq:]
        return carry, (missed**2).mean() ** 0.5

    (parameters, _), errors = jax.lax.scan(part, (parameters, adam.init(parameters)), jnp.arange(PARTS))
    return eqx.combine(parameters, static), errors


def learned(task: Task, plan: Plan, each: list[tuple[int, float, float]]) -> list[dict]:
    """Networks for each seed, rate and noise: the curve of validation errors, `[[step, error], …]`, and the test."""
    seeds, rates, sigmas = zip(*each, strict=True)
    models = plan.make(seeds)
    training, validation = jnp.asarray(task.training, jnp.float32), jnp.asarray(task.validation, jnp.float32)
    keys = jnp.stack([jax.random.key(1000 + seed) for seed in seeds])
    models, curves = learn(
        models, keys, jnp.asarray(rates), jnp.asarray(sigmas), training, validation, (plan.num_steps, task.seq)
    )
    found, part = [], plan.num_steps // PARTS
    for n, (seed, rate, sigma) in enumerate(each):
        given, wanted = asked(task.test, task.seq, sigma, TEST_SEED)
        model = jax.tree.map(lambda leaf, n=n: leaf[n], models)
        guess = model(jnp.asarray(given, jnp.float32))
        curve = [[part * (at + 1), float(f"{value:.4g}")] for at, value in enumerate(np.asarray(curves[n]))]
        found.append({
            "seed": seed,
            "noise": sigma,
            "rate": rate,
            "curve": curve,
            "test": error(np.asarray(guess, np.float64), wanted),
        })  # fmt: skip
    return found


def compared(name: str, task: Task, plan: Plan) -> dict:
    """The networks that learn from each noise, at the rate that is best for the nearest noise of the search.

    The search is by whole trainings with the first seed.
    """

    def one(seed: int, rate: float, sigma: float) -> dict:
        file = KEPT / f"{name}-{plan.num_steps}-{seed}-{rate:g}-{sigma:g}.json"
        return kept(file, lambda: learned(task, plan, [(seed, rate, sigma)])[0])

    searched = [one(0, rate, sigma) for sigma in plan.search for rate in plan.rates]
    models = []
    for sigma in plan.noises:
        nearest = min(plan.search, key=lambda other: abs(np.log(other / sigma)))
        tried = [each for each in searched if each["noise"] == nearest]
        rate = min(tried, key=lambda each: each["curve"][-1][1])["rate"]
        models += [one(seed, rate, sigma) for seed in plan.seeds]
    return {
        "rates": list(plan.rates),
        "tried": [{key: each[key] for key in ("noise", "rate", "curve", "test")} for each in searched],
        "models": models,
        "passes": round(plan.num_steps * BATCH_SIZE / len(task.training), 2),
        "steps": plan.num_steps,
    }


def fresh(make: Callable) -> Callable:
    """Networks that have not learned anything."""
    return lambda seeds: eqx.filter_vmap(lambda key: make(key=key))(jnp.stack([jax.random.key(s) for s in seeds]))


def stored(seeds):
    """The ordinary blocks of `lab/dynamics` that have learned from exact points of several lengths for long."""
    models = pf.load_pretrained("dynamics_lengths")[0].kinds["ordinary"]
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[jnp.asarray(seeds)], models)
