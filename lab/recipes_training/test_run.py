"""A step of a recipe is one of the package, and its rates are those of the schedules."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.recipes_training import run as recipes

RECORD = pf.data.load_record("recipes_training")


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


def ends(recipe: str, of: str = "schedules") -> np.ndarray:
    return np.array(RECORD[of][recipe]["above"])


def steps_of_muon() -> list[int]:
    """After how many steps Muon is where AdamW ends, by seed."""
    adamw, muon = (RECORD["optimisers"][name]["curves"] for name in ("adamw", "muon"))
    return [recipes.steps_to(curve, other[-1]) for curve, other in zip(muon, adamw, strict=True)]


def test_muon_is_ahead_with_each_seed():
    assert (ends("muon", "optimisers") < ends("adamw", "optimisers")).all()


def test_muon_needs_four_fifths_of_the_steps():
    assert max(steps_of_muon()) < RECORD["steps"]
    assert np.mean(steps_of_muon()) / RECORD["steps"] == pytest.approx(0.8, abs=0.05)


def test_slower_steps_use_up_the_gain_of_muon():
    each = RECORD["milliseconds"]["64"]
    assert np.mean(steps_of_muon()) * each["muon"] == pytest.approx(RECORD["steps"] * each["adamw"], rel=0.05)


def test_a_step_of_muon_takes_twice_as_long_at_twice_the_width():
    each = RECORD["milliseconds"]["128"]
    assert each["muon"] == pytest.approx(2 * each["adamw"], rel=0.1)


def test_muon_is_ahead_at_half_and_at_twice_the_width():
    assert len(RECORD["widths"]) == 2
    assert all(each["muon"]["above"] < each["adamw"]["above"] for each in RECORD["widths"].values())


def test_the_lead_of_muon_shrinks_with_five_times_the_steps():
    short = ends("adamw", "optimisers")[0] - ends("muon", "optimisers")[0]
    assert 0 < RECORD["longer"]["adamw"]["above"] - RECORD["longer"]["muon"]["above"] < short / 2


def test_both_optimisers_are_at_their_best_at_the_same_rate():
    assert {min(each["tried"], key=each["tried"].get) for each in RECORD["optimisers"].values()} == {"0.003"}


def test_at_a_larger_rate_muon_is_as_good_and_adamw_a_third_worse():
    adamw, muon = (RECORD["optimisers"][name]["tried"] for name in ("adamw", "muon"))
    assert muon["0.01"] == pytest.approx(muon["0.003"], abs=0.001)
    assert adamw["0.01"] == pytest.approx(4 / 3 * adamw["0.003"], rel=0.05)


def test_a_comparison_at_one_rate_finds_three_times_the_gain_of_muon():
    adamw, muon = (RECORD["optimisers"][name]["tried"] for name in ("adamw", "muon"))
    assert adamw["0.01"] - muon["0.01"] > 3 * (adamw["0.003"] - muon["0.003"]) > 0


def test_a_constant_rate_is_worst_with_each_seed():
    constant = ends("constant")
    assert all((ends(name) < constant).all() for name in RECORD["schedules"] if name != "constant")


@pytest.mark.parametrize("name", ["wsd", "averaged"])
def test_a_fall_or_a_mean_of_the_last_steps_is_as_good_as_a_cosine(name):
    behind = ends(name) - ends("cosine")
    assert behind.mean() < 0 < behind.max() < 0.004


def test_the_inverse_square_root_is_behind_the_cosine_with_each_seed():
    assert (ends("inverse_sqrt") > ends("cosine")).all()


def test_schedule_free_is_ahead_of_the_cosine_and_of_muon_with_each_seed():
    assert (ends("free") < np.minimum(ends("cosine"), ends("muon", "optimisers"))).all()
    assert RECORD["schedules"]["free"]["rate"] >= 3 * RECORD["schedules"]["cosine"]["rate"]
