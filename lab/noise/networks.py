"""Networks that read noisy windows: transformers of ordinary blocks, and a recurrent one.

As in `lab/dynamics/columns.py` training works on windows in columns, `(features, points, windows)`: the numbers of many
windows lie side by side in memory, and results are those of the package's layers on rows.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lab.noise.tasks import AHEAD
from plainformer.models.config import StackConfig, make_block
from plainformer.models.dynamics import OrdinaryTransformer
from plainformer.positions.positions import LearnedPositions
from plainformer.tokens.tokens import Linear


class WindowTransformer(eqx.Module):
    """Two blocks with learned places; the last row says how far the next three points are from the last one."""

    first: Linear
    places: LearnedPositions
    blocks: tuple
    last: Linear

    def __init__(self, seq: int, width: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 5)
        stack = StackConfig(d_model=width, num_heads=2, d_ff=2 * width, norm="rms", activation="swiglu", use_bias=False)
        self.first, self.last = Linear(3, width, key=keys[0]), Linear(width, 3 * AHEAD, key=keys[1])
        self.places = LearnedPositions(seq, width, key=keys[2])
        self.blocks = tuple(make_block(stack, key=key) for key in keys[3:])

    def __call__(self, x: Float[Array, "*batch seq 3"]) -> Float[Array, "*batch ahead 3"]:
        """Return the points that follow."""
        inside = self.places.embed(self.first(x))
        for block in self.blocks:
            inside = block(inside)
        steps = self.last(inside[..., -1, :]).reshape(*x.shape[:-2], AHEAD, 3)
        return x[..., -1:, :] + steps


class Recurrent(eqx.Module):
    """A GRU reads the points one after the other; its state says how far the next three are from the last one."""

    cell: eqx.nn.GRUCell
    last: Linear

    def __init__(self, width: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key)
        self.cell, self.last = eqx.nn.GRUCell(3, width, key=keys[0]), Linear(width, 3 * AHEAD, key=keys[1])

    def __call__(self, x: Float[Array, "*batch seq 3"]) -> Float[Array, "*batch ahead 3"]:
        """Return the points that follow."""
        windows = x.reshape(-1, *x.shape[-2:])

        def after(window):
            return jax.lax.scan(
                lambda state, point: (self.cell(point, state), None), jnp.zeros(self.cell.hidden_size), window
            )[0]

        steps = self.last(jax.vmap(after)(windows)).reshape(*x.shape[:-2], AHEAD, 3)
        return x[..., -1:, :] + steps


def linear(layer: Linear, z):
    """A linear map of every point."""
    flat = layer.weight.T @ z.reshape(len(z), -1)
    return (flat if layer.bias is None else flat + layer.bias[:, None]).reshape(-1, *z.shape[1:])


def normed(norm, z):
    """Every point with a mean square of one."""
    return norm.scale[:, None, None] * z * jax.lax.rsqrt((z**2).mean(axis=0) + norm.eps)


def attended(layer, z, rows: slice):
    """Those points that `rows` names, made of all points of their window by heads that look back and ahead."""
    heads = layer.num_heads

    def in_heads(each, z):
        return linear(each, z).reshape(heads, -1, *z.shape[1:])

    query, key, value = in_heads(layer.query, z[:, rows]), in_heads(layer.key, z), in_heads(layer.value, z)
    scores = (query[:, :, :, None] * key[:, :, None]).sum(axis=1) / math.sqrt(query.shape[1])
    weights = jax.nn.softmax(scores, axis=2)
    mixed = (weights[:, None] * value[:, :, None]).sum(axis=3)
    return linear(layer.output, mixed.reshape(-1, *mixed.shape[2:]))


def in_block(block, z, rows: slice = slice(None)):
    """What one block makes of windows in columns: those points that are asked for."""
    z = z[:, rows] + attended(block.attention, normed(block.attention_norm, z), rows)
    inner, ff = normed(block.feed_forward_norm, z), block.feed_forward
    return z + linear(ff.down, jax.nn.silu(linear(ff.gate, inner)) * linear(ff.up, inner))


def read_in_turn(cell: eqx.nn.GRUCell, z):
    """The state of a GRU after all points of each window, `(hidden, windows)`."""
    bias, bias_of_new = (each[:, None] for each in (cell.bias, cell.bias_n) if each is not None)

    def step(state, point):
        reset, update, new = jnp.split(cell.weight_ih @ point + bias, 3)
        of_reset, of_update, of_new = jnp.split(cell.weight_hh @ state, 3)
        kept = jax.nn.sigmoid(update + of_update)
        new = jnp.tanh(new + jax.nn.sigmoid(reset + of_reset) * (of_new + bias_of_new))
        return new + kept * (state - new), None

    return jax.lax.scan(step, jnp.zeros((cell.hidden_size, z.shape[2])), jnp.moveaxis(z, 1, 0), unroll=z.shape[1])[0]


def applied(model, z):
    """What a model makes of windows in columns, `(3, points, windows)`: the points that follow."""
    if isinstance(model, Recurrent):
        steps = linear(model.last, read_in_turn(model.cell, z))
        return z[:, -1:] + jnp.moveaxis(steps.reshape(AHEAD, 3, -1), 0, 1)
    inside, last = linear(model.first, z) + model.places.table[: z.shape[1]].T[..., None], slice(-1, None)
    for block in model.blocks[:-1]:
        inside = in_block(block, inside)
    if isinstance(model, OrdinaryTransformer):
        return z + linear(model.last, in_block(model.blocks[-1], inside))
    steps = linear(model.last, in_block(model.blocks[-1], inside, last))
    return z[:, -1:] + jnp.moveaxis(steps.reshape(AHEAD, 3, -1), 0, 1)
