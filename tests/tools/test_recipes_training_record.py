"""The recorded recipes: the card, the rates, the counts, and that the script trains as the package does."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_recipes_training as script
from book import ROOT

import plainformer as pf

RECORDED = pf.data.load_record("recipes_training")


def test_card_says_what_was_recorded():
    card = (ROOT / "models" / "recipes_training.md").read_text(encoding="utf-8")
    assert script.card(RECORDED) == card


def test_every_recipe_has_three_rates_of_which_the_best_is_in_the_middle():
    for part in ("optimisers", "schedules"):
        for name, each in RECORDED[part].items():
            tried = {float(rate): loss for rate, loss in each["tried"].items()}
            assert min(tried, key=tried.get) == each["rate"], name
            assert min(tried) < each["rate"] < max(tried), name
            assert tried[each["rate"]] == each["above"][0], name
            assert len(each["above"]) == len(script.SEEDS)


def test_recorded_counts_are_those_of_the_model():
    model = pf.Decoder(script.config_of(), key=jax.random.key(0))
    hidden = pf.training.hidden_matrices(model)
    sizes = [
        leaf.size for leaf, is_hidden in zip(jax.tree.leaves(model), jax.tree.leaves(hidden), strict=True) if is_hidden
    ]
    assert (pf.count_parameters(model), sum(sizes)) == (RECORDED["parameters"], RECORDED["hidden"])


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_step_of_the_script_is_one_of_the_package(optimiser, monkeypatch):
    with jax.numpy_dtype_promotion("standard"):  # optax takes powers of floats
        recipe = script.Recipe(optimiser, width=16, steps=60)
        params = script.Run.begin(recipe).params
        grads = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.01).at[..., 0].set(-0.02), params)
        package = pf.training.make_optimiser(script.training_of(recipe))
        state = package.init(params)
        wanted = params
        ours, found = script.optimiser_of(recipe, 0.0, 0.1, 0.0).init(params), params
        for rate in script.rates_of(recipe)[:2]:
            updates, state = package.update(grads, state, wanted)
            wanted = eqx.apply_updates(wanted, updates)
            updates, ours = script.optimiser_of(recipe, float(rate), 0.1, 0.0).update(grads, ours, found)
            found = eqx.apply_updates(found, updates)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_rates_are_those_of_the_schedules():
    recipe = dataclasses.replace(script.SCHEDULES["wsd"], schedule="constant", rate=0.01)
    level, falling = script.rates_of(recipe), script.rates_of(recipe, 100)
    np.testing.assert_allclose(level[script.WARMUP :], 0.01, rtol=1e-6)
    np.testing.assert_array_equal(level[:301], falling[:301])
    np.testing.assert_allclose(falling[350], 0.01 * 0.55, rtol=1e-5)


def test_steps_to_a_level():
    assert script.steps_to([0.5, 0.3, 0.4, 0.2], 0.3) == 2 * script.EVERY
    assert script.steps_to([0.5], 0.3) is None
