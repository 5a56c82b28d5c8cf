"""Our weights in PyTorch's modules, and theirs in ours, so that both compute the same."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

from plainformer.blocks.blocks import CrossBlock


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


def array(parameter, grad=False):
    """A parameter of theirs, or its gradient, for JAX."""
    return jnp.asarray((parameter.grad if grad else parameter).detach().numpy())


def arrays_of_block(block) -> list:
    """All arrays of a block of ours: attention, cross-attention, network, and their norms."""
    found = []
    reads = isinstance(block, CrossBlock)
    for layer in [block.attention, *([block.cross_attention] if reads else [])]:
        found += [layer.query.weight, layer.key.weight, layer.value.weight]
        found += [layer.query.bias, layer.key.bias, layer.value.bias, layer.output.weight, layer.output.bias]
    network = block.feed_forward
    found += [network.up.weight, network.up.bias, network.down.weight, network.down.bias]
    norms = [block.attention_norm, *([block.cross_norm] if reads else []), block.feed_forward_norm]
    return found + [each for norm in norms for each in (norm.scale, norm.bias)]


def arrays_of_layer(layer, grad=False) -> list:
    """What belongs there, of `torch.nn.TransformerEncoderLayer` or of a decoder's, which hold matrices transposed."""
    found = []
    for attention in (layer.self_attn, getattr(layer, "multihead_attn", None)):
        if attention is not None:
            found += [each.T for each in jnp.split(array(attention.in_proj_weight, grad), 3)]
            found += jnp.split(array(attention.in_proj_bias, grad), 3)
            found += [array(attention.out_proj.weight, grad).T, array(attention.out_proj.bias, grad)]
    for linear in (layer.linear1, layer.linear2):
        found += [array(linear.weight, grad).T, array(linear.bias, grad)]
    norms = (layer.norm1, layer.norm2, getattr(layer, "norm3", None))
    return found + [array(each, grad) for norm in norms if norm is not None for each in (norm.weight, norm.bias)]
