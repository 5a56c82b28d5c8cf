"""The same numbers as PyTorch, to 1e-5."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import plainformer as pf

SEQ, KV_SEQ, D_MODEL, HEADS, BATCH = 5, 7, 12, 3, 4
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture
def draw():
    """A NumPy generator."""
    return np.random.default_rng(0)


def normal(draw, *shape):
    return draw.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("masked", [False, True])
def test_attend_agrees_with_scaled_dot_product_attention(masked, draw):
    queries, keys, values = normal(draw, SEQ, 6), normal(draw, KV_SEQ, 6), normal(draw, KV_SEQ, 2)
    mask = (draw.random((SEQ, KV_SEQ)) < 0.5) | np.eye(SEQ, KV_SEQ, dtype=bool) if masked else None
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(a) for a in (queries, keys, values)), attn_mask=None if mask is None else torch.tensor(mask)
    )
    ours = pf.attend(*map(jnp.asarray, (queries, keys, values)), None if mask is None else jnp.asarray(mask))
    np.testing.assert_allclose(ours, theirs.numpy(), **CLOSE)


def test_attend_agrees_on_gradients(draw):
    arrays = normal(draw, SEQ, 6), normal(draw, KV_SEQ, 6), normal(draw, KV_SEQ, 2)
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    torch.nn.functional.scaled_dot_product_attention(*tensors).square().sum().backward()
    ours = jax.grad(lambda *a: (pf.attend(*a) ** 2).sum(), (0, 1, 2))(*map(jnp.asarray, arrays))
    for gradient, tensor in zip(ours, tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), **CLOSE)


@pytest.mark.parametrize(("cross", "masked"), [(False, True), (True, False), (True, True)])
def test_multi_head_attention_agrees_with_torch(cross, masked, draw):
    theirs = torch.nn.MultiheadAttention(D_MODEL, HEADS, bias=True, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_bias.normal_()
        theirs.out_proj.bias.normal_()
    x = normal(draw, BATCH, SEQ, D_MODEL)
    context = normal(draw, BATCH, KV_SEQ, D_MODEL) if cross else x
    mask = (draw.random((SEQ, context.shape[1])) < 0.6) | np.eye(SEQ, context.shape[1], dtype=bool) if masked else None

    def numpy(tensor):
        return jnp.asarray(tensor.detach().numpy())

    q, k, v = theirs.in_proj_weight.chunk(3)
    b_q, b_k, b_v = theirs.in_proj_bias.chunk(3)
    ours = eqx.tree_at(
        lambda m: (
            *(m.query.weight, m.key.weight, m.value.weight, m.output.weight),
            *(m.query.bias, m.key.bias, m.value.bias, m.output.bias),
        ),
        pf.MultiHeadAttention(D_MODEL, HEADS, use_bias=True, key=jax.random.key(0)),
        (
            *(numpy(w).T for w in (q, k, v, theirs.out_proj.weight)),
            *(numpy(b) for b in (b_q, b_k, b_v, theirs.out_proj.bias)),
        ),
    )
    # Their mask is the other way round: True means "may not attend".
    out, weights = theirs(
        *(torch.tensor(a) for a in (x, context, context)),
        attn_mask=None if mask is None else torch.tensor(~mask),
        average_attn_weights=False,
    )
    allowed = None if mask is None else jnp.asarray(mask)
    x, context = jnp.asarray(x), jnp.asarray(context)
    np.testing.assert_allclose(ours(x, allowed, context=context), out.detach().numpy(), **CLOSE)
    found = ours.attention_weights(x, allowed, context=context)
    np.testing.assert_allclose(found, weights.detach().numpy(), **CLOSE)
