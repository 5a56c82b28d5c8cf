"""Layers of the models of rigid bodies, on windows in columns, `(features, points, windows)`, for training.

The numbers of many windows then lie side by side in memory, and a step of training takes a seventh of the time. Results
are those of the package's layers on rows.
"""

import jax
import jax.numpy as jnp

from plainformer.models import dynamics


def affine(weight, z, bias):
    """A linear map of every point, and its bias."""
    flat = weight.T @ z.reshape(len(z), -1) + bias[:, None]
    return flat.reshape(z.shape)


def mixed(weights, z):
    """Every point made anew of all points of its window."""
    return (weights * z[:, None]).sum(axis=2)


def scores(form, z):
    """How points score each other, `(points, points, windows)`."""
    compared = (form.T @ z.reshape(len(z), -1)).reshape(z.shape)
    return (compared[:, :, None] * z[:, None]).sum(axis=0)


def cayley_of_three(skew):
    """The Cayley transform of skew-symmetric matrices of three rows, whose cube is a multiple of themselves."""
    square = (skew[:, :, None] * skew[None]).sum(axis=1)
    return jnp.eye(3)[..., None] - 2 * (skew - square) / (1 - jnp.trace(square) / 2)


def skew_of(entries, size: int):
    """A skew-symmetric matrix with these numbers above its diagonal."""
    above = dynamics.above_diagonal(entries, size)
    return above - above.mT


def applied(layer, z):
    """What a layer makes of windows in columns."""
    match layer:
        case dynamics.ResidualLayer():
            return z + jnp.tanh(affine(layer.weight, z, layer.bias))
        case dynamics.TriangularLayer():
            size = len(layer.bias_before)
            z = z + jnp.tanh(affine(dynamics.above_diagonal(layer.before, size), z, layer.bias_before))
            return z + jnp.tanh(affine(dynamics.above_diagonal(layer.after, size).T, z, layer.bias_after))
        case dynamics.BilinearAttention():
            return mixed(jax.nn.softmax(scores(layer.form, z), axis=1), z)
        case dynamics.VolumePreservingAttention():
            return mixed(cayley_of_three(scores(skew_of(layer.entries, len(z)), z)), z)
        case dynamics.Places():
            return z + layer.table.T[..., None]
        case dynamics.Composition():
            for each in layer.layers:
                z = applied(each, z)
            return z
        case dynamics.TurningLayer() if len(z) == 3:
            inner = jnp.tanh(layer.weight.T @ z.reshape(3, -1) + layer.bias[:, None])
            above = dynamics.above_diagonal((layer.readout.T @ inner).T, 3)
            turns = cayley_of_three(jnp.moveaxis(above - above.mT, 0, -1))
            return (z.reshape(3, 1, -1) * turns).sum(axis=0).reshape(z.shape)
        case _:  # in rows, as it is
            return jnp.transpose(layer(jnp.transpose(z, (2, 1, 0))), (2, 1, 0))
