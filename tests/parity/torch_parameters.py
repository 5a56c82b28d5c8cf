"""The parameters of modules of PyTorch: drawn anew, read out, and compared."""

import jax.numpy as jnp
import numpy as np
import torch

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def redrawn(model):
    """Theirs with all parameters drawn: scales of one and biases of zero would hide a slip."""
    draw = np.random.default_rng(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.tensor(0.3 * draw.normal(size=tuple(parameter.shape)).astype(np.float32)))
    return model.eval()


def array(parameter, grad=False):
    """A parameter, or its gradient, for JAX."""
    return jnp.asarray((parameter.grad if grad else parameter).detach().numpy())


def assert_close(found, wanted):
    """Agreement to 1e-5, of the largest number where numbers are large."""
    wanted = np.asarray(wanted, np.float64)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * max(1, np.abs(wanted).max()))
