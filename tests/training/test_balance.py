"""Balance: loads and their loss by hand; and training that keeps experts at work, by the plain `fit`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flat import decoder_config

import plainformer as pf

KEY = jax.random.key(3)
SIZES = {"num_experts": 5, "per_token": 2, "width": 6}
BATCH = pf.data.Windows(*jnp.asarray(np.random.default_rng(1).integers(11, size=(2, 3, 7))))
LOSS = pf.training.next_token_loss
plain_slopes = eqx.filter_jit(eqx.filter_grad(LOSS))
balanced_slopes = eqx.filter_jit(eqx.filter_grad(lambda model: pf.training.balanced(LOSS, 0.0)(model, BATCH)[0]))


def decoder(**fields):
    experts = pf.blocks.ExpertsConfig(**SIZES | fields)
    return pf.Decoder(decoder_config(11, 9, d_model=12, num_layers=2, num_heads=3, experts=experts), key=KEY)


@pytest.mark.equation("eq-modern-load")
def test_expert_load_by_hand():
    chosen = jnp.asarray([[[0, 2], [0, 1]], [[0, 2], [2, 0]]])
    np.testing.assert_allclose(pf.training.expert_load(chosen, 4), [4 / 8, 1 / 8, 3 / 8, 0])


@pytest.mark.equation("eq-modern-balance")
def test_balance_loss_by_hand():
    weights = jnp.asarray([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    chosen = jnp.asarray([[0, 1], [2, 1]])  # loads 1/4, 1/2, 1/4; mean weights 0.3, 0.25, 0.45
    by_hand = 3 * (0.3 / 4 + 0.25 / 2 + 0.45 / 4)
    np.testing.assert_allclose(pf.training.balance_loss(weights, chosen), by_hand, rtol=1e-6)
    np.testing.assert_allclose(
        pf.training.balance_loss(3 * weights, chosen), pf.training.balance_loss(weights, chosen), rtol=1e-6
    )


def test_balanced_adds_the_mean_over_blocks_and_measures_without_a_second_trainer():
    model = decoder(capacity=1.0)
    _, seen = pf.look(model, BATCH.inputs)
    routers = [f"stack.blocks.{layer}.feed_forward" for layer in (0, 1)]
    losses = [pf.training.balance_loss(seen[f"{at}.expert_weights"], seen[f"{at}.chosen"]) for at in routers]
    loss, measured = pf.training.balanced(LOSS, 0.5)(model, BATCH, None)
    np.testing.assert_allclose(measured["balance"], np.mean(losses), rtol=1e-6)
    np.testing.assert_allclose(loss, LOSS(model, BATCH) + 0.5 * np.mean(losses), rtol=1e-6)
    loads = [pf.training.expert_load(seen[f"{at}.chosen"], 5) for at in routers]
    np.testing.assert_allclose(measured["busiest"], 5 * np.max(loads), rtol=1e-6)
    dropped = [1 - np.mean(seen[f"{at}.kept"]) for at in routers]
    assert 0 < np.mean(dropped) < 1
    np.testing.assert_allclose(measured["dropped"], np.mean(dropped), rtol=1e-6)


def test_balanced_keeps_what_a_loss_measures_itself():
    def with_length(model, batch, key=None):
        return LOSS(model, batch, key), {"length": jnp.float32(7)}

    assert pf.training.balanced(with_length)(decoder(), BATCH)[1]["length"] == 7


@pytest.mark.equation("eq-modern-moved-bias")
def test_balanced_gives_the_bias_the_difference_of_the_loads_and_changes_nothing_else():
    model = decoder(moved_bias=True, scores="sigmoid")
    found, plain = balanced_slopes(model), plain_slopes(model, BATCH)
    _, seen = pf.look(model, BATCH.inputs)
    for layer, (block, without) in enumerate(zip(found.stack.blocks, plain.stack.blocks, strict=True)):
        load = pf.training.expert_load(seen[f"stack.blocks.{layer}.feed_forward.chosen"], 5)
        np.testing.assert_allclose(block.feed_forward.choice_bias, load - 1 / 5, atol=1e-6)
        np.testing.assert_array_equal(without.feed_forward.choice_bias, 0)
        np.testing.assert_allclose(
            block.feed_forward.router.weight, without.feed_forward.router.weight, rtol=1e-4, atol=1e-6
        )


def test_balanced_takes_a_model_in_16_bits():
    model = decoder(moved_bias=True, scores="sigmoid", capacity=1.25)
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16) if eqx.is_inexact_array(leaf) else leaf, model)
    found, expected = (pf.training.balanced(LOSS, 0.5)(each, BATCH)[0] for each in (half, model))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected, rtol=0.03)


@pytest.mark.equation("eq-modern-moved-bias")
def test_move_bias_moves_by_the_sign_and_leaves_all_else_to_the_other_optimiser():
    model, rate = decoder(moved_bias=True), 0.02
    optimiser = pf.training.move_bias(optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.5)), rate)
    params = eqx.filter(model, eqx.is_inexact_array)
    grads = balanced_slopes(model)
    updates, _ = optimiser.update(grads, optimiser.init(params), params)
    plain = plain_slopes(model, BATCH)  # whose norm has no part of the bias
    expected = jax.tree.map(lambda grad: -0.5 * 0.1 * grad / optax.tree.norm(plain), plain)
    for found, by_hand, slopes in zip(updates.stack.blocks, expected.stack.blocks, grads.stack.blocks, strict=True):
        np.testing.assert_allclose(
            found.feed_forward.choice_bias, -rate * np.sign(slopes.feed_forward.choice_bias), rtol=1e-6
        )
        np.testing.assert_allclose(found.attention.query.weight, by_hand.attention.query.weight, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("way", ["loss", "bias", "nothing"])
def test_fit_balances_a_router_that_begins_with_one_favourite(way):
    """Every token begins with experts 0 and 1; both ways of balancing end that, and nothing else does."""
    model = decoder(moved_bias=way == "bias")

    def one_sided(model):
        routers = [block.feed_forward.router.bias for block in model.stack.blocks]
        return routers

    favoured = [jnp.asarray([3.0, 2.5, 0, 0, 0])] * 2
    model = eqx.tree_at(one_sided, model, favoured)
    config = pf.TrainingConfig(num_steps=60, learning_rate=0.02, weight_decay=0.0)
    loss = pf.training.balanced(LOSS, 1.0 if way == "loss" else 0.0)
    optimiser = pf.training.make_optimiser(config)
    optimiser = pf.training.move_bias(optimiser, 0.05) if way == "bias" else optimiser
    _, metrics = pf.fit(model, loss, lambda step: BATCH, config, optimiser=optimiser, progress=False)
    assert metrics[0]["busiest"] == 2.5  # each of two experts has half of the choices, in equal shares of a fifth
    assert metrics[-1]["busiest"] < 1.8 if way != "nothing" else metrics[-1]["busiest"] > 2


def test_balanced_refuses_a_model_without_experts():
    model = pf.Decoder(decoder_config(11, 9, d_model=12, num_layers=1, num_heads=3), key=KEY)
    with pytest.raises(ValueError, match="The model has no experts"):
        pf.training.balanced(LOSS)(model, BATCH)
