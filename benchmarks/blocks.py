"""Time one forward and backward pass of `pf.TransformerBlock` against Equinox's parts and PyTorch's layer.

Run it as `python benchmarks/blocks.py [repetitions]`. Ratios above 1 mean that Plainformer is faster. PyTorch takes
part if it can be imported, in eager mode and with as many threads as there are cores.
"""

import os
import sys
from functools import partial

import equinox as eqx
import jax
import numpy as np
from timing import compare, forward_and_gradient, one_below_the_other, one_by_one

import plainformer as pf

BATCH, SEQ_LEN, D_MODEL, NUM_HEADS, D_FF = 8, 256, 384, 6, 1536


class EquinoxBlock(eqx.Module):
    """The same pre-norm block, with biases and exact GELU, from Equinox's own parts."""

    attention: eqx.nn.MultiheadAttention
    attention_norm: eqx.nn.LayerNorm
    feed_forward: eqx.nn.MLP
    feed_forward_norm: eqx.nn.LayerNorm

    def __init__(self, *, key):
        attention_key, feed_forward_key = jax.random.split(key)
        biases = {f"use_{name}_bias": True for name in ("query", "key", "value", "output")}
        self.attention = eqx.nn.MultiheadAttention(NUM_HEADS, D_MODEL, **biases, key=attention_key)
        self.attention_norm = eqx.nn.LayerNorm(D_MODEL)
        gelu = partial(jax.nn.gelu, approximate=False)
        self.feed_forward = eqx.nn.MLP(D_MODEL, D_MODEL, D_FF, depth=1, activation=gelu, key=feed_forward_key)
        self.feed_forward_norm = eqx.nn.LayerNorm(D_MODEL)

    def __call__(self, x):
        rows = jax.vmap(self.attention_norm)(x)
        x = x + self.attention(rows, rows, rows)
        return x + jax.vmap(self.feed_forward)(jax.vmap(self.feed_forward_norm)(x))


def torch_run(x, cotangent):
    """Forward and backward pass of PyTorch's layer, without arguments; `None` if there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(os.cpu_count() or 1)
    layer = torch.nn.TransformerEncoderLayer(
        D_MODEL, NUM_HEADS, D_FF, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    rows = torch.tensor(np.asarray(x), requires_grad=True)
    slopes = torch.tensor(np.asarray(cotangent))
    expected = [rows, *layer.parameters()]

    def run():
        torch.autograd.grad(layer(rows), expected, slopes)

    return run


def main(repetitions: int = 25):
    ours_key, theirs_key, x_key, cotangent_key = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(x_key, (BATCH, SEQ_LEN, D_MODEL))
    cotangent = jax.random.normal(cotangent_key, x.shape)
    ours = pf.TransformerBlock(D_MODEL, NUM_HEADS, D_FF, key=ours_key)
    # Equinox keeps non-arrays among its leaves, which jax.jit refuses; they are put aside here.
    theirs, static = eqx.partition(EquinoxBlock(key=theirs_key), eqx.is_array)
    runs = {
        "plainformer": (forward_and_gradient(one_below_the_other(type(ours).__call__)), ours, x, cotangent),
        "equinox": (
            forward_and_gradient(one_by_one(lambda arrays, rows: eqx.combine(arrays, static)(rows))),
            theirs,
            x,
            cotangent,
        ),
    }
    if (run := torch_run(x, cotangent)) is not None:
        runs["pytorch"] = (run,)
    compare(runs, f"batch {BATCH}, {SEQ_LEN} tokens, d_model {D_MODEL}, {NUM_HEADS} heads, d_ff {D_FF}", repetitions)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
