"""A step of a recipe is one of the package, and its rates are those of the schedules."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.recipes_training import run as recipes


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_step_of_the_recipes_is_one_of_the_package(optimiser):
    with jax.numpy_dtype_promotion("standard"):  # optax takes powers of floats
        recipe = recipes.Recipe(optimiser, width=16, steps=60)
        params = recipes.Run.begin(recipe).params
        grads = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.01).at[..., 0].set(-0.02), params)
        package = pf.training.make_optimiser(recipes.training_of(recipe))
        state, wanted = package.init(params), params
        ours, found = recipes.optimiser_of(recipe, 0.0, 0.1, 0.0).init(params), params
        for rate in recipes.rates_of(recipe)[:2]:
            updates, state = package.update(grads, state, wanted)
            wanted = eqx.apply_updates(wanted, updates)
            updates, ours = recipes.optimiser_of(recipe, float(rate), 0.1, 0.0).update(grads, ours, found)
            found = eqx.apply_updates(found, updates)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_rates_of_recipes_are_those_of_the_schedules_and_steps_to_a_level_are_counted():
    recipe = dataclasses.replace(recipes.SCHEDULES["wsd"], schedule="constant", rate=0.01)
    level, falling = recipes.rates_of(recipe), recipes.rates_of(recipe, 100)
    np.testing.assert_allclose(level[recipes.WARMUP :], 0.01, rtol=1e-6)
    np.testing.assert_array_equal(level[:301], falling[:301])
    np.testing.assert_allclose(falling[350], 0.01 * 0.55, rtol=1e-5)
    assert recipes.steps_to([0.5, 0.3, 0.4, 0.2], 0.3) == 2 * recipes.EVERY
    assert recipes.steps_to([0.5], 0.3) is None
