"""Modules with all their parameters drawn at random: scales of one and biases of zero would hide a slip."""

import jax


def redrawn(module, key):
    """The module with normal entries in place of every parameter, in the default precision."""
    leaves, structure = jax.tree.flatten(module)
    keys = jax.random.split(key, len(leaves))
    drawn = [0.5 * jax.random.normal(k, w.shape) for k, w in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, drawn)
