"""Experts against Mixtral, DeepSeek-V3 and gpt-oss as Hugging Face has them: the same numbers, odd sizes."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from torch_parameters import CLOSE, array, redrawn
from toy_models import drawn
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.mixtral import modeling_mixtral

import plainformer as pf

D_MODEL, WIDTH, EXPERTS, PER_TOKEN = 24, 5, 7, 3
X = np.random.default_rng(3).normal(size=(2, 11, D_MODEL)).astype(np.float32)
ROWS = torch.tensor(X.reshape(-1, D_MODEL))


def our_experts(**fields):
    config = pf.blocks.ExpertsConfig(**{"num_experts": EXPERTS, "per_token": PER_TOKEN, "width": WIDTH} | fields)
    stack = pf.StackConfig(d_model=D_MODEL, num_heads=3, experts=config, activation="swiglu", use_bias=False)
    return drawn(lambda stack, *, key: pf.make_block(stack, key=key).feed_forward, stack)


def filled(ours, **arrays):
    """Our layer with their numbers, by their place."""
    named = pf.training.named_arrays(ours)
    missing = named.keys() - arrays.keys()
    assert not missing, missing
    return pf.training.with_arrays(ours, {name: jnp.asarray(arrays[name]) for name in named})


def numbers_of(block) -> dict:
    """The numbers of their router and experts, as ours call them; theirs hold gate and up in one array, transposed."""
    gate, up = np.split(array(block.experts.gate_up_proj).swapaxes(1, 2), 2, axis=2)
    down = array(block.experts.down_proj).swapaxes(1, 2)
    networks = {"gate": gate, "up": up, "down": down}
    return {"router.weight": array(block.gate.weight).T} | {
        f"networks.{name}.weight": numbers for name, numbers in networks.items()
    }


def test_a_mixtral_block_and_its_balance_loss_are_ours():
    config = transformers.MixtralConfig(
        hidden_size=D_MODEL,
        intermediate_size=WIDTH,
        num_local_experts=EXPERTS,
        num_experts_per_tok=PER_TOKEN,
        num_attention_heads=3,
        num_key_value_heads=1,
    )
    theirs = redrawn(modeling_mixtral.MixtralSparseMoeBlock(config))
    ours = filled(our_experts(), **numbers_of(theirs))
    with torch.no_grad():
        expected, (logits, gates, chosen) = theirs(torch.tensor(X)), theirs.gate(ROWS)
    np.testing.assert_allclose(ours(jnp.asarray(X)), expected.numpy(), **CLOSE)
    found = ours.choose(jnp.asarray(X))
    np.testing.assert_allclose(found[0].reshape(-1, PER_TOKEN), gates.numpy(), **CLOSE)
    np.testing.assert_array_equal(found[1].reshape(-1, PER_TOKEN), chosen.numpy())
    theirs_loss = modeling_mixtral.load_balancing_loss_func((logits,), EXPERTS, PER_TOKEN)
    weights = torch.softmax(logits, dim=-1).numpy().reshape(*X.shape[:2], EXPERTS)
    ours_loss = pf.training.balance_loss(jnp.asarray(weights), found[1])
    np.testing.assert_allclose(PER_TOKEN * ours_loss, theirs_loss, **CLOSE)  # theirs sums over the choices of a token


@pytest.mark.parametrize(("groups", "renormalise"), [((7, 1, 1), True), ((15, 5, 2), False), ((12, 3, 1), True)])
def test_a_block_of_deepseek_v3_is_ours(renormalise, groups):
    """With so many experts, in so many groups, of so many of which a token's experts come."""
    num_experts, num_groups, chosen_groups = groups
    config = transformers.DeepseekV3Config(
        hidden_size=D_MODEL,
        moe_intermediate_size=WIDTH,
        n_routed_experts=num_experts,
        num_experts_per_tok=PER_TOKEN,
        n_shared_experts=2,
        n_group=num_groups,
        topk_group=chosen_groups,
        norm_topk_prob=renormalise,
        routed_scaling_factor=2.5,
    )
    theirs = redrawn(modeling_deepseek_v3.DeepseekV3MoE(config))
    bias = np.random.default_rng(4).normal(size=num_experts).astype(np.float32)
    theirs.gate.e_score_correction_bias.copy_(torch.tensor(bias))
    shared = {
        f"shared.{name}.weight": array(getattr(theirs.shared_experts, f"{name}_proj").weight).T
        for name in ("gate", "up", "down")
    }
    fields = {"shared": 2, "scores": "sigmoid", "moved_bias": True, "scale": 2.5, "renormalise": renormalise}
    fields |= {"num_experts": num_experts, "groups": num_groups, "chosen_groups": chosen_groups}
    ours = filled(our_experts(**fields), **numbers_of(theirs), **shared, choice_bias=bias)
    with torch.no_grad():
        expected = theirs(torch.tensor(X)).numpy()
    np.testing.assert_allclose(ours(jnp.asarray(X)), expected, **CLOSE)


def test_the_router_of_gpt_oss_is_ours():
    config = transformers.GptOssConfig(
        hidden_size=D_MODEL, num_local_experts=EXPERTS, num_experts_per_tok=PER_TOKEN, num_attention_heads=3
    )
    theirs = redrawn(modeling_gpt_oss.GptOssTopKRouter(config))
    with torch.no_grad():
        _, gates, chosen = (each.numpy() for each in theirs(ROWS))
    scores = ROWS.numpy() @ array(theirs.weight).T + array(theirs.bias)
    weights = jnp.exp(scores) / jnp.exp(scores).sum(axis=1, keepdims=True)
    found = pf.blocks.route(weights, PER_TOKEN)
    np.testing.assert_allclose(found[0], gates, **CLOSE)
    np.testing.assert_array_equal(found[1], chosen)
