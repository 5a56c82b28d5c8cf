"""What one GPU does with the book's models, beside PyTorch: `python -m benchmarks.gpu` writes `benchmarks/GPU.md`.

It needs JAX and PyTorch for that GPU. The model is as large as the smallest GPT-2, with a vocabulary rounded up to a
multiple of 64, because tensor cores work on whole tiles.
"""

import argparse
import dataclasses
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # both libraries want memory of the same device

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

import plainformer as pf
from benchmarks.attention_costs import CAUSAL, by_jax, direct, forward_and_backward
from benchmarks.generation import PUBLISHED, new_prompt, published
from benchmarks.gpt2 import same_weights
from benchmarks.memory import planned_by_xla
from benchmarks.report import ROOT, Section, say, table, versions
from benchmarks.steps import TRAINING, our_training, step_rows, those_that_run, torch_training
from benchmarks.timing import in_turn, milliseconds, ratios, spread
from benchmarks.torch_gpt import GPT
from benchmarks.training_step import new_batch
from plainformer.models.hardware import HARDWARE
from plainformer.models.low_precision import in_few_bytes

DEVICE = "cuda"
CONFIG = pf.DecoderConfig(50_304, 1024, pf.StackConfig(d_model=768, num_layers=12, num_heads=12))
BATCH_SIZE, ATTENTION_SHAPE, BLOCK = 16, (8, 12, 4096, 64), 512
SIDE, SUMMED, ROUNDS = 8192, 2**30, 7
NEW_TOKENS, PROMPT_LEN, TEXTS = 128, 10, (1, 64)
FORMS: tuple[Literal["direct", "blockwise"], ...] = ("direct", "blockwise")
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


torch.backends.cuda.matmul.allow_tf32 = True


def waiting(run):
    """The function, which waits for the GPU before it returns: PyTorch's own functions do not."""

    def finished():
        run()
        torch.cuda.synchronize()

    return finished


def best(hardware: str) -> Section:
    """Bare products and a sum, by both libraries."""
    square, row = np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32), jnp.ones(SUMMED)
    theirs, multiply, add = torch.tensor(square, device=DEVICE), jax.jit(jnp.matmul), jax.jit(jnp.sum)
    long = torch.ones(SUMMED, device=DEVICE)
    runs: dict[str, Any] = {}
    for kind, dtype in KINDS.items():
        a, b = jnp.asarray(square, kind), theirs.to(dtype)
        runs[f"product, {kind}, JAX"] = lambda a=a: multiply(a, a)
        runs[f"product, {kind}, PyTorch"] = waiting(lambda b=b: b @ b)
    runs |= {"sum, JAX": lambda: add(row), "sum, PyTorch": waiting(lambda: long.sum())}
    times = in_turn(runs, ROUNDS, calls=3)
    rows = []
    for name, seconds in times.items():
        done, unit = (2 * SIDE**3 / 1e12, "TFLOP/s") if "product" in name else (4 * SUMMED / 1e12, "TB/s")
        rows.append([name, unit, spread(done / second for second in seconds).show(2 if unit == "TB/s" else 0)])
    known = HARDWARE[hardware]
    note = (
        f"Products of two matrices of {SIDE:,} × {SIDE:,}, where both libraries compute float32 in TF32; sums of 4 GiB."
        f" The sheet promises {known.flops / 1e12:,.0f} TFLOP/s with numbers of 16 bits, and "
        f"{known.memory_bandwidth / 1e12:.2f} TB/s."
    )
    return Section("The GPU at its best", note + "\n\n" + table(["what", "unit", "speed"], rows), [])


def our_steps(kind: Literal["float32", "bfloat16"]) -> dict:
    """Our training steps by name, with the arguments of each."""
    batch = pf.data.Windows(*(jnp.asarray(array, jnp.int32) for array in new_batch(CONFIG, BATCH_SIZE)))
    training, found = dataclasses.replace(TRAINING, precision=kind), {}
    for form in FORMS:
        stack = dataclasses.replace(CONFIG.stack, attention=form)
        model = pf.Decoder(dataclasses.replace(CONFIG, stack=stack), key=jax.random.key(0))
        found[f"Plainformer, {form}"] = our_training(model, pf.training.next_token_loss, batch, training)
    return found


def torch_steps(kind: str) -> dict:
    """PyTorch's training steps by name: the same model, whose weights stay in 32 bits."""
    batch = [torch.tensor(array, device=DEVICE) for array in new_batch(CONFIG, BATCH_SIZE)]

    def step(compiled):
        model = GPT(CONFIG).to(DEVICE)

        def loss_of(inputs, targets):
            with torch.autocast(DEVICE, KINDS[kind], enabled=kind != "float32"):
                return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

        return waiting(torch_training(model, loss_of, batch, compiled))

    return {f"PyTorch, {'compiled' if fast else 'eager'}": step(fast) for fast in (True, False)}


def training_step(hardware: str, kind: Literal["float32", "bfloat16"]) -> Section:
    """A step in 16 or in 32 bits, its share of what the sheet promises, and the plan made before."""
    steps = our_steps(kind)
    runs = {name: run for name, (run, _) in steps.items()} | torch_steps(kind)
    first, lines = those_that_run(runs)
    times = in_turn({name: runs[name] for name in first}, ROUNDS, calls=3)
    tokens = BATCH_SIZE * CONFIG.context_len
    needed = pf.training_flops(CONFIG, tokens) / HARDWARE[hardware].flops
    more = {
        name: [
            f"{tokens / spread(times[name]).middle / 1e3:,.0f}",
            f"{spread(needed / second for second in times[name]).middle:.1%}",
        ]
        for name in first
    }
    shown = table(
        ["", "ms per step", "time by ours", "1,000 tokens a second", "MFU", "first step, s"],
        step_rows(times, first, more),
    )
    plan = pf.plan(CONFIG, {"data": 1}, hardware, batch_size=BATCH_SIZE, precision=kind)
    least, most = (1e3 * second for second in plan.step_seconds)
    lines.append(
        f"`pf.plan` says {least:.0f} to {most:.0f} ms a step, bound by {plan.bound}, and "
        f"{plan.memory / 1e9:.1f} GB. {memory_of(steps)}"
    )
    note = (
        f"12 × 768, {pf.count_parameters(pf.Decoder(CONFIG, key=jax.random.key(0))):,} numbers, {BATCH_SIZE} texts of "
        f"{CONFIG.context_len:,} tokens, AdamW. MFU is the share of the sheet's 16-bit operations that the model needs."
    )
    return Section(f"Training step, {kind}", "\n\n".join([note, shown, *lines]), [])


def memory_of(steps: dict) -> str:
    """What the compiler sets aside for each of our steps, with its arguments."""
    found = (f"{planned_by_xla(*step) / 1e9:.1f} GB ({name.split(', ', 1)[1]})" for name, (_, step) in steps.items())
    return f"The compiler sets aside {', '.join(found)}."


def attention(hardware: str) -> Section:
    """Forward and backward of the forms of attention."""
    *rows, slopes = jax.random.normal(jax.random.key(0), (4, *ATTENTION_SHAPE), jnp.bfloat16)
    theirs = [torch.tensor(np.asarray(each, np.float32), device=DEVICE).bfloat16() for each in (*rows, slopes)]
    inputs = [each.requires_grad_() for each in theirs[:3]]

    def by_blocks(q, k, v):
        return pf.attention.blockwise_attention(q, k, v, CAUSAL, block_size=BLOCK)

    def by_cudnn(q, k, v):
        q, k, v = (each.swapaxes(-2, -3) for each in (q, k, v))
        return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn").swapaxes(-2, -3)

    def by_torch():
        result = F.scaled_dot_product_attention(*inputs, is_causal=True)
        torch.autograd.grad(result, inputs, theirs[3])

    forms = {"by blocks": by_blocks, "direct": direct, "jax.nn, XLA": by_jax, "jax.nn, cuDNN": by_cudnn}
    runs = {name: forward_and_backward(form, rows, slopes) for name, form in forms.items()}
    first, lines = those_that_run(runs | {"PyTorch": waiting(by_torch)})
    runs |= {"PyTorch": waiting(by_torch)}
    times = in_turn({name: runs[name] for name in first}, ROUNDS, calls=3)
    shown = [[name, milliseconds(times[name], 2), ratios(times[name], times["by blocks"]).show(2)] for name in times]
    batch, heads, length, width = ATTENTION_SHAPE
    note = f"{batch} texts of {length:,} tokens, {heads} heads of {width}, causal, bfloat16, forward and backward."
    return Section("Attention", "\n\n".join([note, table(["", "ms", "time by ours"], shown), *lines]), [])


def drawn() -> tuple[pf.Decoder, torch.nn.Module]:
    """A model of GPT-2's size, as ours and as `transformers` has it."""
    stack = dataclasses.replace(CONFIG.stack, activation="gelu_tanh")
    model = pf.Decoder(dataclasses.replace(CONFIG, stack=stack), key=jax.random.key(0))
    return model, same_weights(model)


def writing(hardware: str, name: str, both: Callable[[], tuple[pf.Decoder, torch.nn.Module]]) -> Section:
    """Greedy writing with a cache, one text and many, beside `transformers`."""
    model, reference = both()
    reference, rows, known = reference.to(DEVICE).eval(), [], HARDWARE[hardware]
    for texts in TEXTS:
        prompts = [new_prompt(model.config, PROMPT_LEN)] * texts
        ids = torch.tensor(prompts, device=DEVICE)

        def theirs(ids=ids):
            how = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "eos_token_id": None}
            with torch.inference_mode():
                reference.generate(ids, attention_mask=torch.ones_like(ids), **how)

        runs = {
            f"Plainformer, {kind}": lambda each=each, prompts=prompts: pf.generate(
                each, prompts, NEW_TOKENS, temperature=0
            )
            for kind, each in {"float32": model, "bfloat16": in_few_bytes(model, "bfloat16")}.items()
        }
        times = in_turn(runs | {"transformers, float32": waiting(theirs)}, max(3, ROUNDS // 2))
        for who, seconds in times.items():
            speed = spread(texts * NEW_TOKENS / second for second in seconds).show(0)
            rows.append([texts, who, milliseconds([second / NEW_TOKENS for second in seconds], 2), speed])
    read = 4 * (pf.count_parameters(model) - pf.count_parameters(model.stack.scheme))
    note = (
        f"{NEW_TOKENS} tokens after {PROMPT_LEN}, greedy, reading the prompt included. To read the weights once, "
        f"{read / 1e6:.0f} MB of 32-bit numbers, takes {1e3 * read / known.memory_bandwidth:.2f} ms at the sheet's "
        "bandwidth."
    )
    return Section(f"Writing: {name}", note + "\n\n" + table(["texts", "", "ms per token", "tokens/s"], rows), [])


PARTS = {
    "best": best,
    "training in 16 bits": partial(training_step, kind="bfloat16"),
    "training in 32 bits": partial(training_step, kind="float32"),
    "attention": attention,
    "writing": partial(writing, name="GPT-2's size", both=drawn),
    "writing, SmolLM2": partial(writing, name=PUBLISHED, both=published),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--hardware", default="H100", help="its name in HARDWARE (%(default)s)")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "GPU.md")
    chosen = parser.parse_args()
    lines = [
        "# On a GPU",
        "Written by `python -m benchmarks.gpu`. What is compared ran in turn, round after round, in one process. "
        "Figures are medians, with the quartiles in brackets. *Time by ours*: by that of the first line.",
        f"- GPU: {torch.cuda.get_device_name()}.\n- Versions: {versions()}.",
    ]
    for part in chosen.parts:
        say(part)
        try:
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
                section = process.submit(PARTS[part], chosen.hardware).result()
        except Exception as error:  # the other parts go on
            section = Section(f"Not measured: {part}", f"`{type(error).__name__}`: {str(error)[:600]}", [])
            say(section.body)
        lines += [f"## {section.title}", section.body]
        chosen.output.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
