"""The configuration of training, its learning rate and its optimiser, step by step on paper."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adamw import adamw

import plainformer as pf
from plainformer.training.optimiser import TrainingConfig, learning_rate_schedule, make_optimiser

CONFIG = TrainingConfig(num_steps=11, learning_rate=0.06, warmup_steps=3, min_lr_ratio=0.25, weight_decay=0.3)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"warmup_steps": 200}, "expected fewer than num_steps=200"),
        ({"seed": 2**31}, "seed is 2147483648"),
        ({"clip_norm": math.inf}, "clip_norm is inf"),
        ({"min_lr_ratio": 1.1}, "min_lr_ratio is 1.1"),
        ({"beta_1": 1.0}, "beta_1 is 1.0"),
    ],
)
def test_training_config_names_what_is_wrong(bad, message, unchecked):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**{"num_steps": 200, **bad})


def test_training_config_takes_the_limits(unchecked):
    TrainingConfig(num_steps=1, warmup_steps=0, min_lr_ratio=0, weight_decay=0, beta_1=0, beta_2=0, clip_norm=None)
    TrainingConfig(num_steps=np.int64(3), warmup_steps=np.int32(2), min_lr_ratio=1, learning_rate=np.float32(0.1))


@pytest.mark.equation("eq-real-text-schedule")
def test_learning_rate_schedule_by_hand():
    # Up in four equal stairs, 0.015 each; down along half a cosine of eight steps, to a quarter of 0.06.
    up = [0.015, 0.03, 0.045, 0.06]
    middle, half_way = (0.06 + 0.015) / 2, (0.06 - 0.015) / 2
    down = [middle + half_way * math.cos(math.pi * n / 8) for n in range(1, 9)]
    schedule = jax.vmap(learning_rate_schedule(CONFIG))
    rates = np.asarray(schedule(jnp.arange(12)))
    np.testing.assert_allclose(rates, up + down, rtol=1e-6)
    assert rates[11] == pytest.approx(0.015, rel=1e-6)
    assert rates.argmax() == CONFIG.warmup_steps


def by_optax(weights, gradients, config):
    optimiser = make_optimiser(config)
    state = optimiser.init(weights)
    update = jax.jit(optimiser.update)
    for gradient in gradients:
        updates, state = update(gradient, state, weights)
        weights = jax.tree.map(jnp.add, weights, updates)
    return weights


@pytest.mark.equation("eq-primer-adam", "eq-real-text-adamw")
@pytest.mark.parametrize("clip_norm", [None, 1.5])
def test_make_optimiser_is_adamw_by_hand(clip_norm):
    numbers = np.random.default_rng(3)
    shapes = {"matrix": (4, 3), "vector": (5,), "cube": (2, 3, 2)}
    weights = {name: jnp.asarray(numbers.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
    # The second gradient is short, so that it is not clipped; the two others are.
    gradients = [
        {name: jnp.asarray(scale * numbers.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
        for scale in (1.0, 0.05, 3.0)
    ]
    config = dataclasses.replace(CONFIG, clip_norm=clip_norm)
    found = by_optax(weights, gradients, config)
    expected = adamw(weights, gradients, config, rates=[0.015, 0.03, 0.045])
    for name in shapes:
        np.testing.assert_allclose(found[name], expected[name], atol=2e-6)


def test_biases_of_experts_side_by_side_do_not_decay():
    experts = pf.blocks.ExpertsConfig(num_experts=3, per_token=2, width=5)
    block = pf.make_block(pf.StackConfig(d_model=4, num_heads=2, experts=experts), key=jax.random.key(0))
    params = eqx.filter(jax.tree.map(lambda leaf: leaf + 1, block), eqx.is_inexact_array)
    config = pf.TrainingConfig(num_steps=9, learning_rate=0.1, warmup_steps=0, weight_decay=0.5)
    optimiser = pf.training.make_optimiser(config)
    updates, _ = optimiser.update(jax.tree.map(jnp.zeros_like, params), optimiser.init(params), params)
    assert not updates.feed_forward.networks.up.bias.any()
    assert updates.feed_forward.networks.up.weight.any()
