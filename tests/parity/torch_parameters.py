"""The parameters of modules of PyTorch: drawn anew, and read out."""

import numpy as np
import torch

from benchmarks.weights import array as array

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def redrawn(model):
    """Theirs with all parameters that are learned drawn: scales of one and biases of zero would hide a slip."""
    draw = np.random.default_rng(1)
    with torch.no_grad():
        for parameter in filter(lambda parameter: parameter.requires_grad, model.parameters()):
            parameter.copy_(torch.tensor(0.3 * draw.normal(size=tuple(parameter.shape)).astype(np.float32)))
    return model.eval()
