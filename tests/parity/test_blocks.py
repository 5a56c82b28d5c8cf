"""Norms and the token-wise network: the same numbers and gradients as PyTorch, to 1e-5 (blocks: `test_seq2seq.py`)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import plainformer as pf

SEQ, D_MODEL, D_FF, BATCH = 5, 12, 20, 4
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


def network_from(theirs, *, grad=False):
    """The arrays of a token-wise network, or their gradients."""
    inner, outer = theirs.linear1, theirs.linear2
    arrays = [array(p.grad if grad else p) for p in (inner.weight, outer.weight, inner.bias, outer.bias)]
    return [arrays[0].T, arrays[1].T, *arrays[2:]]


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


def test_layer_norm_agrees_with_torch(draw):
    eps = 0.1
    theirs = redrawn(torch.nn.LayerNorm(D_MODEL, eps=eps), draw)
    ours = eqx.tree_at(lambda m: [m.scale, m.bias], pf.LayerNorm(D_MODEL, eps=eps), norm_from(theirs))
    rows = 3 * normal(draw, BATCH, SEQ, D_MODEL) + 2
    slopes = normal(draw, BATCH, SEQ, D_MODEL)
    assert_same(ours, theirs, rows, slopes, lambda m: ([m.scale, m.bias], norm_from(theirs, grad=True)))


def test_rms_norm_agrees_with_torch(draw):
    eps = 0.1
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
