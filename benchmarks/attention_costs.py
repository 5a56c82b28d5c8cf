"""Efficiency in figures: attention by blocks beside its peers, its memory, and weights of fewer bytes."""

import dataclasses
import json
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

import plainformer as pf
from benchmarks.hardware import use_all_cores
from benchmarks.memory import MIB, resident
from benchmarks.report import ROOT, Goal, Section, Settings, say, table
from benchmarks.timing import in_turn, milliseconds, ratios, spread
from benchmarks.training_step import LARGE
from plainformer.models.low_precision import in_few_bytes

HEADS, WIDTH, SEQ_LEN, LONG = 8, 64, 4096, 16_384
CAUSAL = pf.attention.Mask(causal=True)
LARGEST = pf.DecoderConfig(50_257, 1024, stack=pf.StackConfig(d_model=768, num_layers=12, num_heads=12))


def blockwise(q, k, v):
    return pf.attention.blockwise_attention(q, k, v, CAUSAL)


def direct(q, k, v):
    return pf.attend(q, k, v, pf.causal_mask(q.shape[-2]))


def by_jax(q, k, v):
    swapped = (rows.swapaxes(-2, -3) for rows in (q, k, v))
    return jax.nn.dot_product_attention(*swapped, is_causal=True).swapaxes(-2, -3)


def forward_and_backward(form, rows, slopes):
    @jax.jit
    def run(rows, slopes):
        result, backward = jax.vjp(form, *rows)
        return result, backward(slopes)

    return lambda: run(rows, slopes)


def by_torch(rows, slopes):
    rows = [torch.tensor(np.asarray(each)[None], requires_grad=True) for each in rows]
    slopes = torch.tensor(np.asarray(slopes)[None])

    def run():
        result = torch.nn.functional.scaled_dot_product_attention(*rows, is_causal=True)
        torch.autograd.grad(result, rows, slopes)

    return run


def attention_of_peers(settings: Settings) -> tuple[str, list[Goal]]:
    """Forward and backward at 4,096 tokens, and the bare products of the same shapes."""
    rows = list(jax.random.normal(jax.random.key(0), (4, HEADS, SEQ_LEN, WIDTH)))
    *rows, slopes = rows
    theirs = [torch.tensor(np.asarray(each)) for each in rows]
    scores = jax.jit(lambda q, k: q @ k.mT)
    runs = {
        "by blocks": forward_and_backward(blockwise, rows, slopes),
        "direct": forward_and_backward(direct, rows, slopes),
        "jax.nn.dot_product_attention": forward_and_backward(by_jax, rows, slopes),
        "PyTorch's scaled_dot_product_attention": by_torch(rows, slopes),
        "bare products, JAX": lambda: scores(rows[0], rows[1]),
        "bare products, PyTorch": lambda: theirs[0] @ theirs[1].mT,
    }
    say("attention at 4,096 tokens")
    times = in_turn(runs, max(2, settings.rounds // 3))
    lines = [
        [name, milliseconds(times[name], 0), ratios(times[name], times["by blocks"]).show(2)] for name in list(runs)[:4]
    ]
    products = ratios(times["bare products, PyTorch"], times["bare products, JAX"])
    note = (
        f"{HEADS} heads of {WIDTH}, {SEQ_LEN:,} tokens, causal, forward and backward. The bare products of the scores, "
        f"{SEQ_LEN:,} × {WIDTH} × {SEQ_LEN:,} for each head, take PyTorch {products.show(2)} of JAX's time."
    )
    goals = [
        Goal(
            f"Attention, {SEQ_LEN:,} tokens: {what}", ratios(times[name], times["by blocks"]).middle, "at least", share
        )
        for name, what, share in (
            ("direct", "direct / by blocks", 2),
            ("jax.nn.dot_product_attention", "share of jax.nn.dot_product_attention's speed", 1.5),
            ("PyTorch's scaled_dot_product_attention", "share of PyTorch's speed", 0.5),
        )
    ]
    return note + "\n\n" + table(["", "ms", "time by ours"], lines), goals


def decoder_forward(settings: Settings) -> tuple[str, list[Goal]]:
    """A whole decoder reads 4,096 tokens."""
    say("decoder at 4,096 tokens")
    config, forward = dataclasses.replace(LARGE[0], context_len=SEQ_LEN), eqx.filter_jit(lambda model, ids: model(ids))
    ids = jnp.asarray(np.random.default_rng(0).integers(config.vocab_size, size=SEQ_LEN), jnp.int32)
    models = {
        form: pf.Decoder(dataclasses.replace(config, stack=dataclasses.replace(config.stack, attention=form)), key=key)
        for key in [jax.random.key(0)]
        for form in ("direct", "blockwise")
    }
    off = float(jnp.abs(forward(models["direct"], ids) - forward(models["blockwise"], ids)).max())
    times = in_turn(
        {form: lambda m=model: forward(m, ids) for form, model in models.items()}, max(2, settings.rounds // 3)
    )
    ratio = ratios(times["direct"], times["blockwise"])
    body = (
        f"6 × 384, forward, one text of {SEQ_LEN:,} tokens: direct {milliseconds(times['direct'], 0)} ms, by blocks "
        f"{milliseconds(times['blockwise'], 0)} ms, ratio {ratio.show(2)}; logits differ by at most {off:.0e}."
    )
    return body, [Goal(f"Decoder 6 × 384, {SEQ_LEN:,} tokens: direct / by blocks", ratio.middle, "at least", 2)]


def few_bytes(settings: Settings) -> tuple[str, list[Goal]]:
    """Writing by the largest model, with weights of four bytes, of two and of one."""
    say("writing with weights of fewer bytes")
    model, prompt = pf.Decoder(LARGEST, key=jax.random.key(0)), list(range(10))
    models = {"float32": model, **{kind: in_few_bytes(model, kind) for kind in ("bfloat16", "int8")}}

    def write(model):
        return lambda: pf.generate(model, [prompt], 32, temperature=0)[0].tokens

    rounds = max(2, settings.rounds // 5)
    times = in_turn({name: write(each) for name, each in models.items()}, rounds)
    bare = in_turn(row_by_matrix(), 5 * rounds)
    rows = [
        [name, spread(32 / second for second in times[name]).show(1), ratios(times["float32"], times[name]).show(2)]
        for name in models
    ]
    limit, reached = (ratios(each["float32"], each["int8"]) for each in (bare, times))
    note = (
        "12 × 768, vocabulary 50,257, one text, greedy, 32 tokens after 10, reading them included. A bare row times a "
        f"matrix of 4,096 × 4,096, kept as int8, runs at {limit.show(2)} of the speed that it has in float32."
    )
    name = "Writing, 12 × 768, int8: share of what the bare product gains"
    goal = Goal(name, reached.middle / limit.middle, "at least", 0.75)
    return note + "\n\n" + table(["weights", "tokens/s", "by float32"], rows), [goal]


def row_by_matrix() -> dict:
    """A row times a matrix, which is kept as float32, or as int8 and turned into floats on its way."""
    matrix, row = jnp.ones((4096, 4096)), jnp.ones(4096)
    small, multiply = matrix.astype(jnp.int8), jax.jit(lambda matrix, row: matrix @ row)
    convert = jax.jit(lambda small, row: (small.astype(row.dtype) * row).sum(axis=-1))
    return {"float32": lambda: multiply(matrix, row), "int8": lambda: convert(small, row)}


def long_attention() -> dict:
    """Attention over 16,384 tokens in this process: the most memory that it takes beyond what was there before."""
    rows = list(jax.random.normal(jax.random.key(0), (4, HEADS, LONG, WIDTH)))
    before, _ = resident()
    run = forward_and_backward(blockwise, rows[:3], rows[3])
    jax.block_until_ready(run())
    return {"grown": (resident()[1] - before) / MIB}


def long_memory(settings: Settings) -> tuple[str, list[Goal]]:
    """The same in a process of its own, beside what the direct form would keep."""
    say("attention over 16,384 tokens")
    command = [sys.executable, "-m", "benchmarks.attention_costs"]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    grown = json.loads(done.stdout.splitlines()[-1])["grown"]
    rows = 3 * [np.zeros((HEADS, LONG, WIDTH), np.float32)]
    kept = pf.training.count_kept_bytes(direct, *rows) / MIB
    body = (
        f"{HEADS} heads of {WIDTH}, {LONG:,} tokens, forward and backward, in a process of its own: {grown:,.0f} MiB "
        f"by blocks, beside the inputs; the direct form would keep {kept:,.0f} MiB for its gradients."
    )
    return body, [Goal(f"Attention over {LONG:,} tokens by blocks: MiB", grown, "at most", 2048, 0)]


def attention_costs(settings: Settings) -> Section:
    use_all_cores()
    parts = [part(settings) for part in (attention_of_peers, long_memory, decoder_forward, few_bytes)]
    return Section(
        "What attention costs, and weights of fewer bytes",
        "\n\n".join(body for body, _ in parts),
        [goal for _, goals in parts for goal in goals],
    )


if __name__ == "__main__":
    print(json.dumps(long_attention()))
