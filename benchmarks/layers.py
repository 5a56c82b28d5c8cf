"""One layer and one block, forward and backward: ours against Equinox's and PyTorch's."""

import time
from functools import partial

import equinox as eqx
import jax
import numpy as np
import torch

import plainformer as pf
from benchmarks.hardware import use_all_cores
from benchmarks.report import Section, Settings, say, table
from benchmarks.steps import those_that_run
from benchmarks.timing import in_turn, milliseconds, ratios

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


def forward_and_backward(layer, call, x, cotangent):
    """A function that computes outputs and gradients, for the parameters and the batch."""
    arrays, static = eqx.partition(layer, eqx.is_array)  # Equinox keeps other leaves, too, which jax.jit refuses

    @jax.jit
    def run(arrays, x, cotangent):
        outputs, backward = jax.vjp(lambda arrays, x: call(eqx.combine(arrays, static), x), arrays, x)
        return outputs, backward(cotangent)

    return lambda: run(arrays, x, cotangent)


def torch_run(x, cotangent):
    """The same of PyTorch's block, eager."""
    layer = torch.nn.TransformerEncoderLayer(
        D_MODEL, NUM_HEADS, D_FF, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    rows, slopes = torch.tensor(np.asarray(x), requires_grad=True), torch.tensor(np.asarray(cotangent))
    parameters = [rows, *layer.parameters()]

    def run():
        torch.autograd.grad(layer(rows), parameters, slopes)

    return run


def variants() -> dict[str, dict]:
    """The functions to time, by layer and by whose it is."""
    key, x_key, cotangent_key = jax.random.split(jax.random.key(0), 3)
    x, cotangent = (jax.random.normal(key, (BATCH, SEQ_LEN, D_MODEL)) for key in (x_key, cotangent_key))
    run = partial(forward_and_backward, x=x, cotangent=cotangent)
    attention = pf.MultiHeadAttention(D_MODEL, NUM_HEADS, key=key)
    block = pf.make_block(pf.StackConfig(d_model=D_MODEL, num_heads=NUM_HEADS, d_ff=D_FF), key=key)
    return {
        "Multi-head attention": {
            "Plainformer": run(attention, lambda layer, x: layer(x)),
            "Equinox": run(
                eqx.nn.MultiheadAttention(NUM_HEADS, D_MODEL, key=key),
                lambda layer, x: jax.vmap(lambda rows: layer(rows, rows, rows))(x),
            ),
        },
        "Transformer block": {
            "Plainformer": run(block, lambda layer, x: layer(x)),
            "Equinox": run(EquinoxBlock(key=key), lambda layer, x: jax.vmap(layer)(x)),
            "PyTorch": torch_run(x, cotangent),
        },
    }


def layers(settings: Settings) -> Section:
    use_all_cores()
    note = (
        f"Batch {BATCH}, {SEQ_LEN} tokens, d_model {D_MODEL}, {NUM_HEADS} heads, d_ff {D_FF}; all compiled but PyTorch."
    )
    head = ["", "ms", "time by ours", "processor ms", "processor time by ours"]
    parts = [note]
    for title, runs in variants().items():
        say(title)
        first, lines = those_that_run(runs)
        runs = {name: runs[name] for name in first}
        clocks = [in_turn(runs, settings.rounds, clock=clock) for clock in (time.perf_counter, time.process_time)]
        rows = [[name] for name in runs]
        for times in clocks:
            for row in rows:
                ratio = ratios(times[row[0]], times["Plainformer"]).show(2)
                row += [milliseconds(times[row[0]]), "" if row[0] == "Plainformer" else ratio]
        parts.append("\n\n".join([f"### {title}", table(head, rows), *lines]))
    return Section("Layers", "\n\n".join(parts), [])
