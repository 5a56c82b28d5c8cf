"""Muon, schedules that need no end, and a z-loss: by hand, against singular values, and in a run that goes on."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_run import numbers_of, run

import plainformer as pf
from plainformer.training.optimiser import TrainingConfig, learning_rate_schedule, make_optimiser
from plainformer.training.recipes import endless_schedule, hidden_matrices, muon, with_decay

STACK = pf.StackConfig(d_model=8, num_layers=2, num_heads=2, norm="rms", activation="swiglu", d_ff=12, use_bias=True)
DECODER = pf.Decoder(pf.DecoderConfig(11, 6, stack=STACK), key=jax.random.key(0))
MUON = TrainingConfig(num_steps=12, learning_rate=0.1, warmup_steps=3, optimiser="muon", checkpoint_every=4)


def chosen(model):
    """The names of the hidden matrices."""
    hidden = pf.training.named_arrays(jax.tree.map(jnp.asarray, hidden_matrices(model)))
    return {name for name, is_hidden in hidden.items() if is_hidden}


def polynomial(matrix, steps=5):
    """The equation in float64."""
    x = np.asarray(matrix, np.float64)
    x = x / np.sqrt((x**2).sum())
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x - 4.7750 * gram @ x + 2.0315 * gram @ gram @ x
    return x


def test_hidden_matrices_are_those_within_blocks():
    arrays = pf.training.named_arrays(DECODER)
    wanted = {n for n, a in arrays.items() if n.startswith("stack.blocks.") and a.ndim == 2}
    assert chosen(DECODER) == wanted
    assert len(wanted) == 14
    assert "output.weight" in arrays.keys() - wanted or "embedding.weight" in arrays.keys() - wanted


def test_matrices_of_experts_are_hidden_and_their_biases_are_not():
    experts = pf.blocks.ExpertsConfig(num_experts=3, per_token=2, width=5)
    model = pf.make_block(dataclasses.replace(STACK, experts=experts), key=jax.random.key(0))
    names = {name for name in chosen(model) if "networks" in name}
    assert names == {f"feed_forward.networks.{part}.weight" for part in ("gate", "up", "down")}


def test_without_blocks_all_matrices_are_hidden_but_embeddings():
    table = pf.TokenEmbedding(7, 4, key=jax.random.key(0))
    line = pf.Linear(4, 3, key=jax.random.key(1))
    hidden = hidden_matrices((table, line))
    assert jax.tree.leaves(hidden) == [False, *(leaf.ndim == 2 for leaf in jax.tree.leaves(line))]


@pytest.mark.equation("eq-recipes-newton-schulz", "eq-recipes-muon")
@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 5, 2)])
def test_first_step_of_muon_by_hand(shape):
    rng = np.random.default_rng(3)
    weight, gradient = (jnp.asarray(rng.normal(size=shape), jnp.float32) for _ in range(2))
    optimiser = muon(
        0.1, weight_decay=0.2, others=optax.sgd(1.0), hidden=lambda tree: jax.tree.map(lambda _: True, tree)
    )
    updates, _ = optimiser.update(gradient, optimiser.init(weight), weight)
    matrices = np.reshape(gradient, (-1, *shape[-2:]))
    turned = np.stack([polynomial(each) for each in matrices]).reshape(shape)
    wanted = -0.1 * (0.2 * np.sqrt(max(shape[-2:])) * turned + 0.2 * np.asarray(weight))
    np.testing.assert_allclose(updates, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-recipes-muon")
def test_muon_looks_ahead_along_its_running_mean():
    """Once the mean no longer begins at zero, the matrix that is turned is the mean with the new gradient once more."""
    rng, kept = np.random.default_rng(4), 0.5
    gradients = [jnp.asarray(rng.normal(size=(3, 4)), jnp.float32) for _ in range(30)]
    optimiser = muon(1.0, momentum=kept, others=optax.sgd(1.0))
    weight = {"weight": jnp.zeros((3, 4))}
    state, mean = optimiser.init(weight), np.zeros((3, 4))
    for gradient in gradients:
        updates, state = optimiser.update({"weight": gradient}, state, weight)
        mean = kept * mean + (1 - kept) * np.asarray(gradient, np.float64)
    ahead = kept * mean + (1 - kept) * np.asarray(gradients[-1], np.float64)
    np.testing.assert_allclose(updates["weight"], -0.2 * 2 * polynomial(ahead), rtol=1e-3, atol=1e-4)


def test_all_but_hidden_matrices_move_by_adamw():
    grads = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.01), DECODER)
    by_name = {}
    for name in ("adamw", "muon"):
        optimiser = make_optimiser(dataclasses.replace(MUON, optimiser=name))
        updates, _ = optimiser.update(grads, optimiser.init(DECODER), DECODER)
        by_name[name] = pf.training.named_arrays(updates)
    for name, update in by_name["adamw"].items():
        is_same = np.allclose(update, by_name["muon"][name], rtol=1e-6)
        assert is_same == (name not in chosen(DECODER)), name


def test_weight_decay_falls_where_one_says():
    config = TrainingConfig(num_steps=9, warmup_steps=0, learning_rate=0.1, weight_decay=0.5)
    for optimiser in ("adamw", "muon"):
        by_hand = make_optimiser(dataclasses.replace(config, optimiser=optimiser), decays=hidden_matrices)
        zero = jax.tree.map(jnp.zeros_like, DECODER)
        updates = pf.training.named_arrays(by_hand.update(zero, by_hand.init(DECODER), DECODER)[0])
        arrays = pf.training.named_arrays(DECODER)
        for name, update in updates.items():
            wanted = -0.05 * arrays[name] if name in chosen(DECODER) else 0 * arrays[name]
            np.testing.assert_allclose(update, wanted, rtol=1e-5, atol=1e-7)


def test_a_run_by_muon_goes_on_as_if_it_had_never_stopped(tmp_path):
    whole = run(MUON)
    run(dataclasses.replace(MUON, num_steps=8, schedule="constant"), directory=tmp_path)
    steady = dataclasses.replace(MUON, schedule="constant")
    found = run(steady, directory=tmp_path)
    assert numbers_of(found.model) == numbers_of(run(steady).model) != numbers_of(whole.model)
    with pytest.raises(ValueError, match=r"of another run: optimiser was muon and is adamw"):
        run(dataclasses.replace(steady, optimiser="adamw"), directory=tmp_path)


@pytest.mark.equation("eq-recipes-inverse-sqrt")
def test_inverse_square_root_by_hand():
    rate = endless_schedule(0.5, 3, "inverse_sqrt")
    by_hand = [0.5 * min((j + 1) / 4, ((j + 1) / 4) ** -0.5) for j in range(40)]
    np.testing.assert_allclose([rate(j) for j in range(40)], by_hand, rtol=1e-6)
    np.testing.assert_allclose(rate(4 * 4 - 1), 0.25, rtol=1e-6)


@pytest.mark.equation("eq-recipes-wsd")
def test_warm_up_stable_decay_by_hand():
    config = TrainingConfig(
        num_steps=20, learning_rate=0.4, warmup_steps=3, schedule="constant", decay_steps=8, min_lr_ratio=0.25
    )
    rate = learning_rate_schedule(config)
    wanted = [0.1, 0.2, 0.3, 0.4, *[0.4] * 8, *(0.4 * (1 - 0.75 * j / 8) for j in range(9))]
    np.testing.assert_allclose([rate(j) for j in range(21)], wanted, rtol=1e-6)


def test_a_run_may_be_told_later_when_it_ends(tmp_path):
    level = TrainingConfig(num_steps=8, learning_rate=0.1, warmup_steps=2, schedule="constant")
    run(level, directory=tmp_path)
    ending = dataclasses.replace(level, num_steps=12, decay_steps=4, min_lr_ratio=0.1)
    found = run(ending, directory=tmp_path)
    assert numbers_of(found.model) == numbers_of(run(ending).model)
    assert found.metrics[8]["learning_rate"] > found.metrics[11]["learning_rate"]


def test_decay_is_for_schedules_that_do_not_fall_and_ends_within_the_run():
    with pytest.raises(ValueError, match="decay_steps is 5 with schedule='cosine'"):
        TrainingConfig(num_steps=200, warmup_steps=10, decay_steps=5)
    with pytest.raises(ValueError, match="together at most num_steps=200"):
        TrainingConfig(num_steps=200, warmup_steps=10, schedule="constant", decay_steps=191)
    with pytest.raises(ValueError, match="decay_steps is 9"):
        with_decay(endless_schedule(0.1, 2), 8, 9)


@pytest.mark.equation("eq-recipes-z-loss")
def test_z_loss_by_hand():
    logits = jnp.log(jnp.asarray([[1.0, 3.0], [6.0, 2.0]]))
    targets = jnp.asarray([1, 0])
    plain, found = pf.cross_entropy(logits, targets), pf.cross_entropy(logits, targets, z_loss=0.5)
    np.testing.assert_allclose(found - plain, 0.25 * (np.log(4) ** 2 + np.log(8) ** 2), rtol=1e-5)
    one = pf.cross_entropy(logits, targets, jnp.asarray([True, False]), z_loss=0.5)
    np.testing.assert_allclose(one, np.log(4 / 3) + 0.5 * np.log(4) ** 2, rtol=1e-5)


@pytest.mark.equation("eq-recipes-z-gradient")
def test_gradient_of_the_z_loss_pulls_all_logits_by_their_probabilities(key):
    logits = jax.random.normal(key, (1, 5)) + 2
    targets = jnp.asarray([3])
    grads = [jax.grad(lambda o, c=c: pf.cross_entropy(o, targets, z_loss=c))(logits) for c in (0.0, 0.3)]
    log_sum = jax.nn.logsumexp(logits)
    np.testing.assert_allclose(grads[1] - grads[0], 2 * 0.3 * log_sum * jax.nn.softmax(logits), rtol=1e-4, atol=1e-6)


def test_next_token_loss_takes_a_z_loss():
    ids = jnp.asarray(np.random.default_rng(0).integers(11, size=(2, 7)))
    batch = pf.data.Windows(ids[:, :-1], ids[:, 1:])
    with_z = functools.partial(pf.training.next_token_loss, z_loss=0.01)
    logits = DECODER(batch.inputs)
    wanted = pf.cross_entropy(logits, batch.targets) + 0.01 * (jax.nn.logsumexp(logits, axis=-1) ** 2).mean()
    np.testing.assert_allclose(eqx.filter_jit(with_z)(DECODER, batch), wanted, rtol=1e-5)
