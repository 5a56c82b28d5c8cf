"""The delta rule and its layer against those of Qwen3-Next in transformers, with the same numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch_parameters import CLOSE, array, redrawn
from transformers.models.qwen3_next import modeling_qwen3_next as theirs

import plainformer as pf

SEQ, HEADS, D_K, D_V, BATCH = 70, 3, 4, 6, 2  # more tokens than a block has


def drawn_rows(seed=0):
    draw = np.random.default_rng(seed)
    queries, keys = (draw.normal(size=(BATCH, HEADS, SEQ, D_K)) for _ in range(2))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    values, betas = draw.normal(size=(BATCH, HEADS, SEQ, D_V)), draw.uniform(size=(BATCH, HEADS, SEQ))
    return [a.astype(np.float32) for a in (queries, keys, values, betas, -draw.exponential(size=betas.shape) / 4)]


@pytest.mark.parametrize(
    ("rule", "with_state"), [("torch_recurrent_gated_delta_rule", True), ("torch_chunk_gated_delta_rule", False)]
)
def test_delta_rule_agrees_with_both_of_theirs(rule, with_state):
    rows = drawn_rows()
    queries, keys, values, betas, log_factors = (torch.tensor(a).transpose(1, 2) for a in rows)
    state = np.random.default_rng(1).normal(size=(BATCH, HEADS, D_K, D_V)).astype(np.float32) if with_state else None
    expected, last = getattr(theirs, rule)(
        queries * D_K**0.5,  # which they divide by it
        keys,
        values,
        g=log_factors,
        beta=betas,
        initial_state=None if state is None else torch.tensor(state),
        output_final_state=True,
    )
    out, found = pf.attention.delta_rule(*map(jnp.asarray, rows), None if state is None else jnp.asarray(state))
    np.testing.assert_allclose(out, expected.transpose(1, 2).numpy(), **CLOSE)
    np.testing.assert_allclose(found, last.numpy(), **CLOSE)


def test_delta_rule_agrees_on_gradients():
    rows = drawn_rows(2)
    tensors = [torch.tensor(a, requires_grad=True) for a in rows]
    queries, keys, values, betas, log_factors = (a.transpose(1, 2) for a in tensors)
    out, _ = theirs.torch_chunk_gated_delta_rule(queries * D_K**0.5, keys, values, g=log_factors, beta=betas)
    out.square().sum().backward()
    ours = jax.grad(lambda *rows: (pf.attention.delta_rule(*rows)[0] ** 2).sum(), range(5))(*map(jnp.asarray, rows))
    for gradient, tensor in zip(ours, tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=1e-4, atol=1e-4)


def their_layer():
    config = theirs.Qwen3NextConfig(
        hidden_size=12,
        linear_num_key_heads=HEADS,
        linear_num_value_heads=HEADS,
        linear_key_head_dim=D_K,
        linear_value_head_dim=D_V,
        linear_conv_kernel_dim=4,
        num_hidden_layers=1,
        layer_types=["linear_attention"],
    )
    return redrawn(theirs.Qwen3NextGatedDeltaNet(config, 0))


def opened(layer) -> pf.attention.GatedDeltaNet:
    """Ours with the numbers of theirs, whose matrices stand head by head in one."""
    widths = np.cumsum([D_K, D_K, D_V])
    of_heads = array(layer.in_proj_qkvz.weight).T.reshape(12, HEADS, -1)
    query, key, value, gate = (part.reshape(12, -1) for part in np.split(of_heads, widths, axis=2))
    beta, factor = array(layer.in_proj_ba.weight).T.reshape(12, HEADS, 2).transpose(2, 0, 1)
    norm = pf.RMSNorm(D_V, eps=layer.norm.variance_epsilon)
    made = pf.attention.GatedDeltaNet(12, HEADS, d_k=D_K, d_v=D_V, norm=norm, key=jax.random.key(0))

    def numbers(each):
        maps = (each.query, each.key, each.value, each.gate, each.beta, each.factor, each.output)
        return [*(part.weight for part in maps), each.factor.bias, each.kernel, each.log_rate, each.norm.scale]

    given = [query, key, value, gate, beta, factor, array(layer.out_proj.weight).T, array(layer.dt_bias)]
    given += [array(layer.conv1d.weight)[:, 0].T, array(layer.A_log), array(layer.norm.weight)]
    assert [a.shape for a in given] == [a.shape for a in numbers(made)]
    return eqx.tree_at(numbers, made, [jnp.asarray(a) for a in given])


def test_the_whole_layer_agrees():
    layer, x = their_layer(), np.random.default_rng(3).normal(size=(BATCH, SEQ, 12)).astype(np.float32)
    with torch.no_grad():
        expected = layer(torch.tensor(x)).numpy()
    np.testing.assert_allclose(opened(layer)(jnp.asarray(x)), expected, **CLOSE)
