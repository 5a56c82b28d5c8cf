"""How costs grow: the forward pass with the length of the text, the compiler's time with depth."""

import dataclasses
import time

import equinox as eqx
import jax
import numpy as np
import torch

import plainformer as pf
from benchmarks.hardware import use_all_cores
from benchmarks.report import Section, Settings, say, table
from benchmarks.timing import in_turn, milliseconds, ratios, spread
from benchmarks.torch_gpt import GPT
from benchmarks.training_step import LARGE, SMALL, new_batch, our_step

LENGTHS = (256, 512, 1024, 2048, 4096)
DEPTHS = (6, 12, 24)


def growth_with_length(settings: Settings) -> Section:
    """Forward pass on one text, our decoder compiled, the plain PyTorch GPT eager."""
    use_all_cores()
    config = dataclasses.replace(LARGE[0], context_len=LENGTHS[-1])
    model, gpt = pf.Decoder(config, key=jax.random.key(0)), GPT(config).eval()
    forward = eqx.filter_jit(lambda model, ids: model(ids))
    rows, before = [], None
    for length in LENGTHS:
        say(f"forward pass, {length} tokens")
        ids = np.random.default_rng(0).integers(config.vocab_size, size=(1, length))
        ours_ids, theirs_ids = jax.numpy.asarray(ids, jax.numpy.int32), torch.tensor(ids)

        def ours(ids=ours_ids):
            return forward(model, ids)

        def theirs(ids=theirs_ids):
            with torch.inference_mode():
                return gpt(ids)

        rounds = max(2, settings.rounds // (1 if length < 2048 else 2))
        times = in_turn({"ours": ours, "theirs": theirs}, rounds)
        middle = spread(times["ours"]).middle
        grown = "" if before is None else f"{middle / before:.2f}"
        before = middle
        columns = [milliseconds(times[name]) for name in times]
        rows.append([f"{length:,}", *columns, ratios(times["theirs"], times["ours"]).show(2), grown])
    head = ["tokens", "ours, ms", "PyTorch eager, ms", "PyTorch / ours", "ours, times the row above"]
    note = (
        "One text, 6 × 384. Our attention writes out its scores, a square matrix per head, for the reader to see; "
        "PyTorch's `scaled_dot_product_attention` never holds them whole."
    )
    return Section("Forward pass against length", note + "\n\n" + table(head, rows), [])


def compile_time(settings: Settings) -> Section:
    """Tracing and compiling a training step at 128 wide, layer after layer written out."""
    rows = []
    repetitions = min(3, settings.rounds)
    for depth in DEPTHS:
        say(f"compiling {depth} layers")
        config, batch_size = SMALL
        config = dataclasses.replace(config, stack=dataclasses.replace(config.stack, num_layers=depth))
        tracing, compiling = [], []
        for _ in range(repetitions):
            _, (train_step, *arguments) = our_step(config, new_batch(config, batch_size))
            start = time.perf_counter()
            lowered = train_step.func.lower(*train_step.args, *arguments, 0)
            middle = time.perf_counter()
            lowered.compile()
            tracing.append(middle - start)
            compiling.append(time.perf_counter() - middle)
            jax.clear_caches()
        rows.append([depth, spread(tracing).show(2), spread(compiling).show(2)])
    note = f"A training step, 128 wide, batch 12 of 64 tokens; {repetitions} times each, from empty caches."
    return Section(
        "Compile time against depth", note + "\n\n" + table(["layers", "tracing, s", "compiling, s"], rows), []
    )
