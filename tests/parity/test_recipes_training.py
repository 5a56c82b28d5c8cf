"""Muon as PyTorch has it, and the schedules of Hugging Face."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
import transformers

import plainformer as pf

STEPS, WARMUP, DECAY, PEAK = 30, 4, 9, 0.2


def theirs(make):
    """The rates of a schedule of theirs, which multiplies that of an optimiser."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    schedule, rates = make(optimiser), []
    for _ in range(STEPS):
        rates.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    return np.array(rates)


def ours(**fields):
    config = pf.TrainingConfig(num_steps=STEPS, learning_rate=PEAK, warmup_steps=WARMUP - 1, **fields)
    return np.array([pf.training.learning_rate_schedule(config)(step) for step in range(STEPS)])


@pytest.mark.equation("eq-recipes-wsd")
@pytest.mark.parametrize("end", [0.0, 0.25])
def test_warm_up_stable_decay_is_theirs(end):
    """Their rise begins at the end's share, and makes that step; ours begins at what is theirs after one step."""
    their_rates = theirs(
        lambda optimiser: transformers.get_wsd_schedule(
            optimiser, WARMUP, DECAY, STEPS + 1, decay_type="linear", min_lr_ratio=end
        )
    )
    found = ours(schedule="constant", decay_steps=DECAY, min_lr_ratio=end)
    begin = 0 if end == 0 else WARMUP
    np.testing.assert_allclose(found[begin:-1], their_rates[begin + 1 :], rtol=1e-5, atol=1e-7)


@pytest.mark.equation("eq-recipes-inverse-sqrt")
def test_inverse_square_root_is_theirs():
    their_rates = theirs(lambda optimiser: transformers.get_inverse_sqrt_schedule(optimiser, WARMUP))
    np.testing.assert_allclose(ours(schedule="inverse_sqrt")[:-1], their_rates[1:], rtol=1e-5)


@pytest.mark.equation("eq-recipes-newton-schulz", "eq-recipes-muon")
@pytest.mark.parametrize("shape", [(6, 9), (12, 5)])
def test_a_step_of_muon_is_theirs(shape, monkeypatch):
    """Theirs begins its mean without a correction: one gradient many times. Its products are in 32 bits here."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda tensor: tensor.clone())
    rng = np.random.default_rng(7)
    weight, gradient = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    parameter = torch.nn.Parameter(torch.tensor(weight))
    their_muon = torch.optim.Muon([parameter], lr=0.1, weight_decay=0.2, adjust_lr_fn="match_rms_adamw")
    optimiser = pf.training.muon(0.1, weight_decay=0.2, others=optax.sgd(1.0))
    params = {"weight": jnp.asarray(weight)}
    state = optimiser.init(params)
    for _ in range(3):
        parameter.grad = torch.tensor(gradient)
        their_muon.step()
        updates, state = optimiser.update({"weight": jnp.asarray(gradient)}, state, params)
        params = optax.apply_updates(params, updates)
    np.testing.assert_allclose(params["weight"], parameter.detach().numpy(), rtol=1e-4, atol=1e-5)
