"""Our weights in PyTorch's modules, so that both compute the same."""

import jax
import numpy as np
import torch


def noisy(model):
    """The model with noise on everything, biases and norms too, so that a wrong copy cannot go unseen."""
    leaves, structure = jax.tree.flatten(model)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    return jax.tree.unflatten(
        structure, [leaf + 0.05 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys, strict=True)]
    )


def of_norm(theirs, ours) -> list[tuple]:
    """Pairs of a parameter and what belongs into it, of a layer norm."""
    return [(theirs.weight, ours.scale), (theirs.bias, ours.bias)]


def of_linear(theirs, ours) -> list[tuple]:
    """The same of `torch.nn.Linear`, which keeps its matrix transposed."""
    return [(theirs.weight, ours.weight.T), (theirs.bias, ours.bias)]


def copy_weights(pairs) -> None:
    """Write our arrays into PyTorch's parameters."""
    with torch.no_grad():
        for theirs, ours in pairs:
            theirs.copy_(torch.tensor(np.asarray(ours)))
