"""Norms, the token-wise network and both blocks: the same numbers and gradients as PyTorch, to 1e-5; and Equinox."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flat import make_block

import plainformer as pf

SEQ, KV_SEQ, D_MODEL, HEADS, D_FF, BATCH = 5, 7, 12, 3, 20, 4
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture
def draw():
    """A NumPy generator."""
    return np.random.default_rng(0)


def normal(draw, *shape):
    return draw.normal(size=shape).astype(np.float32)


def redrawn(layer, draw):
    """PyTorch's layer with all parameters drawn: scales of one and biases of zero would hide a slip."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.tensor(0.4 * normal(draw, *parameter.shape)))
    return layer


def array(tensor):
    return jnp.asarray(tensor.detach().numpy())


def norm_from(theirs, *, grad=False):
    """The arrays of a norm, or their gradients, as ours has them."""
    return [array(p.grad if grad else p) for p in theirs.parameters()]


def attention_from(theirs, *, grad=False):
    """The arrays of an attention layer, or their gradients: theirs stacks three matrices, each turned on its side."""
    weight, bias, out, out_bias = (
        array(p.grad if grad else p)
        for p in (theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight, theirs.out_proj.bias)
    )
    return [*(w.T for w in jnp.split(weight, 3)), out.T, *jnp.split(bias, 3), out_bias]


def network_from(theirs, *, grad=False):
    """The arrays of a token-wise network, or their gradients."""
    inner, outer = theirs.linear1, theirs.linear2
    arrays = [array(p.grad if grad else p) for p in (inner.weight, outer.weight, inner.bias, outer.bias)]
    return [arrays[0].T, arrays[1].T, *arrays[2:]]


def arrays_of(block):
    """Ours, in the order of the functions above."""

    def of_attention(m):
        weights = [m.query.weight, m.key.weight, m.value.weight, m.output.weight]
        return [*weights, m.query.bias, m.key.bias, m.value.bias, m.output.bias]

    network = block.feed_forward
    found = [network.up.weight, network.down.weight, network.up.bias, network.down.bias]
    found += of_attention(block.attention)
    found += [block.attention_norm.scale, block.attention_norm.bias]
    found += [block.feed_forward_norm.scale, block.feed_forward_norm.bias]
    if hasattr(block, "cross_attention"):
        found += [*of_attention(block.cross_attention), block.cross_norm.scale, block.cross_norm.bias]
    return found


def encoder_from(theirs, *, grad=False):
    return [
        *network_from(theirs, grad=grad),
        *attention_from(theirs.self_attn, grad=grad),
        *norm_from(theirs.norm1, grad=grad),
        *norm_from(theirs.norm2, grad=grad),
    ]


def decoder_from(theirs, *, grad=False):
    return [
        *network_from(theirs, grad=grad),
        *attention_from(theirs.self_attn, grad=grad),
        *norm_from(theirs.norm1, grad=grad),
        *norm_from(theirs.norm3, grad=grad),  # theirs are numbered in the order of the sublayers
        *attention_from(theirs.multihead_attn, grad=grad),
        *norm_from(theirs.norm2, grad=grad),
    ]


def assert_same(ours, theirs, rows, slopes, gradients_of):
    """Outputs, gradients for the rows and gradients for the parameters agree."""
    tensor = torch.tensor(rows, requires_grad=True)
    expected = theirs(tensor)
    expected.backward(torch.tensor(slopes))
    got, backward = jax.vjp(lambda m, x: m(x), ours, jnp.asarray(rows))
    np.testing.assert_allclose(got, expected.detach().numpy(), **CLOSE)
    for_parameters, for_rows = backward(jnp.asarray(slopes))
    np.testing.assert_allclose(for_rows, tensor.grad.numpy(), **CLOSE)
    for name, (mine, other) in enumerate(zip(*gradients_of(for_parameters), strict=True)):
        np.testing.assert_allclose(mine, other, **CLOSE, err_msg=f"parameter {name}")


@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_layer_norm_agrees_with_torch(eps, draw):
    theirs = redrawn(torch.nn.LayerNorm(D_MODEL, eps=eps), draw)
    ours = eqx.tree_at(lambda m: [m.scale, m.bias], pf.LayerNorm(D_MODEL, eps=eps), norm_from(theirs))
    rows = 3 * normal(draw, BATCH, SEQ, D_MODEL) + 2
    slopes = normal(draw, BATCH, SEQ, D_MODEL)
    assert_same(ours, theirs, rows, slopes, lambda m: ([m.scale, m.bias], norm_from(theirs, grad=True)))


@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_rms_norm_agrees_with_torch(eps, draw):
    # Without eps theirs adds the spacing of the floats at 1, about 1e-7, where ours adds 1e-5.
    theirs = redrawn(torch.nn.RMSNorm(D_MODEL, eps=eps), draw)
    ours = eqx.tree_at(lambda m: [m.scale], pf.RMSNorm(D_MODEL, eps=eps), norm_from(theirs))
    rows, slopes = 3 * normal(draw, BATCH, SEQ, D_MODEL) + 2, normal(draw, BATCH, SEQ, D_MODEL)
    assert_same(ours, theirs, rows, slopes, lambda m: ([m.scale], norm_from(theirs, grad=True)))


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_feed_forward_agrees_with_torch(activation, draw):
    theirs = torch.nn.Sequential()
    theirs.add_module("linear1", torch.nn.Linear(D_MODEL, D_FF))
    functions = {
        "relu": torch.nn.ReLU(),
        "gelu": torch.nn.GELU(),
        "gelu_tanh": torch.nn.GELU(approximate="tanh"),
        "silu": torch.nn.SiLU(),
    }
    theirs.add_module("activation", functions[activation])
    theirs.add_module("linear2", torch.nn.Linear(D_FF, D_MODEL))
    redrawn(theirs, draw)
    ours = pf.FeedForward(D_MODEL, D_FF, activation=activation, key=jax.random.key(0))

    def arrays(m):
        return [m.up.weight, m.down.weight, m.up.bias, m.down.bias]

    ours = eqx.tree_at(arrays, ours, network_from(theirs))
    rows, slopes = normal(draw, BATCH, SEQ, D_MODEL), normal(draw, BATCH, SEQ, D_MODEL)
    assert_same(ours, theirs, rows, slopes, lambda m: (arrays(m), network_from(theirs, grad=True)))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_placement", ["pre", "post"])
def test_transformer_block_agrees_with_torchs_encoder_layer(norm_placement, activation, masked, draw):
    theirs = torch.nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, 0.0, activation, batch_first=True, norm_first=norm_placement == "pre"
    )
    redrawn(theirs, draw)
    ours = make_block(D_MODEL, HEADS, D_FF, norm_placement=norm_placement, activation=activation, key=jax.random.key(0))
    ours = eqx.tree_at(arrays_of, ours, encoder_from(theirs))
    rows, slopes = normal(draw, BATCH, SEQ, D_MODEL), 0.1 * normal(draw, BATCH, SEQ, D_MODEL)
    mask = pf.causal_mask(SEQ) if masked else None
    hidden = ~torch.tensor(np.asarray(mask)) if masked else None  # theirs is True where a token may not attend

    def gradients(m):
        return arrays_of(m.block), encoder_from(theirs, grad=True)

    assert_same(Masked(ours, mask), lambda x: theirs(x, src_mask=hidden), rows, slopes, gradients)


class Masked(eqx.Module):
    """A block with its mask, so that it can be called with rows alone."""

    block: pf.Block
    mask: jax.Array | None

    def __call__(self, x):
        return self.block(x, self.mask)


@pytest.mark.parametrize("norm_placement", ["pre", "post"])
def test_transformer_block_with_cross_attention_agrees_with_torchs_decoder_layer(norm_placement, draw):
    theirs = torch.nn.TransformerDecoderLayer(
        D_MODEL, HEADS, D_FF, 0.0, "gelu", batch_first=True, norm_first=norm_placement == "pre"
    )
    redrawn(theirs, draw)
    ours = make_block(D_MODEL, HEADS, D_FF, norm_placement=norm_placement, cross_attention=True, key=jax.random.key(0))
    ours = eqx.tree_at(arrays_of, ours, decoder_from(theirs))
    rows, contexts = normal(draw, SEQ, D_MODEL), normal(draw, KV_SEQ, D_MODEL)
    slopes = 0.1 * normal(draw, SEQ, D_MODEL)
    causal, seen = pf.causal_mask(SEQ), draw.random((SEQ, KV_SEQ)) < 0.6
    seen[:, 0] = True
    tensors = [torch.tensor(a[None], requires_grad=True) for a in (rows, contexts)]
    expected = theirs(*tensors, tgt_mask=~torch.tensor(np.asarray(causal)), memory_mask=~torch.tensor(seen))
    expected.backward(torch.tensor(slopes[None]))

    def call(block, x, context):
        return block(x, causal, context=context, context_mask=jnp.asarray(seen))

    got, backward = jax.vjp(call, ours, jnp.asarray(rows), jnp.asarray(contexts))
    np.testing.assert_allclose(got, expected[0].detach().numpy(), **CLOSE)
    for_parameters, *for_inputs = backward(jnp.asarray(slopes))
    for mine, tensor in zip(for_inputs, tensors, strict=True):
        np.testing.assert_allclose(mine, tensor.grad[0].numpy(), **CLOSE)
    for mine, other in zip(arrays_of(for_parameters), decoder_from(theirs, grad=True), strict=True):
        np.testing.assert_allclose(mine, other, **CLOSE)
