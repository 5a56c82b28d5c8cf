"""One training step: ours against a plain PyTorch GPT and `transformers`' GPT-2, each eager and compiled.

All train the same model (exact GELU, tied embedding, no dropout), in the way that `steps` describes.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
from gpt2 import new_gpt2
from hardware import gigaflops, products, use_all_cores
from report import Goal, Section, Settings, say, table
from steps import our_training, those_that_run, torch_training
from timing import in_turn, ratios, spread
from torch_gpt import GPT

import plainformer as pf

SMALL = (pf.DecoderConfig(65, 64, d_model=128, num_layers=4, num_heads=4), 12)
LARGE = (pf.DecoderConfig(65, 256, d_model=384, num_layers=6, num_heads=6), 8)
WANTED = {"4 × 128": 1.1, "6 × 384": 1.3}


def new_batch(config: pf.DecoderConfig, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(0).integers(config.vocab_size, size=(batch_size, config.context_len + 1))
    return ids[:, :-1], ids[:, 1:]


def our_step(config: pf.DecoderConfig, batch):
    """A function without arguments that trains for one step, and the compiled step itself with its arguments."""
    batch = tuple(jnp.asarray(array, jnp.int32) for array in batch)
    return our_training(pf.Decoder(config, key=jax.random.key(0)), pf.next_token_loss, batch)


def torch_step(model, batch, compiled: bool):
    """The same for a PyTorch model, or for one of `transformers`."""
    of_transformers = hasattr(model, "transformer")

    def loss_of(inputs, targets):
        logits = model(inputs, use_cache=False).logits if of_transformers else model(inputs)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return torch_training(model, loss_of, [torch.tensor(array) for array in batch], compiled)


def peers(config: pf.DecoderConfig, batch) -> dict:
    """The four variants by name, not yet run."""
    torch.manual_seed(0)
    return {
        f"{name}, {'compiled' if compiled else 'eager'}": torch_step(new_model(config), batch, compiled)
        for name, new_model in (("PyTorch", GPT), ("transformers", new_gpt2))
        for compiled in (False, True)
    }


def one_size(label: str, config: pf.DecoderConfig, batch_size: int, rounds: int, calls: int) -> tuple[str, list[Goal]]:
    say(f"training step, {label}")
    batch = new_batch(config, batch_size)
    ours, *_ = our_step(config, batch)
    start = time.perf_counter()
    ours()
    own_first = time.perf_counter() - start
    say(f"Plainformer: first step after {own_first:.1f} s")
    others, first, lines = those_that_run(peers(config, batch))
    if not others:
        raise RuntimeError("Nothing to compare with: " + " ".join(lines))
    runs, first = {"Plainformer": ours, **others}, {"Plainformer": own_first, **first}
    times = in_turn({**runs, **products()}, rounds, calls=calls)
    ours = times["Plainformer"]
    flops = pf.training_flops(config, batch_size * config.context_len)
    rows = []
    for name in runs:
        ratio = "" if name == "Plainformer" else ratios(times[name], ours).show(2)
        ms = spread(1e3 * second for second in times[name]).show(1)
        speed = spread(flops / second / 1e9 for second in times[name]).show(0)
        rows.append([name, ms, ratio, speed, f"{first[name]:.1f}"])
    head = ["", "ms per step", "time by ours", "GFLOP/s", "first step, s"]
    fastest = min(others, key=lambda name: spread(times[name]).middle)
    of_product = spread(
        flops / second / 1e9 / speed for second, speed in zip(ours, gigaflops(times["JAX product"]), strict=True)
    )
    lines += [
        f"Fastest of the others: {fastest}. A step takes {flops / 1e9:.1f} GFLOP in matrix products; ours runs at "
        f"{of_product.show(2)} of JAX's bare product, {spread(gigaflops(times['JAX product'])).show(0)} GFLOP/s "
        f"(PyTorch's: {spread(gigaflops(times['PyTorch product'])).show(0)})."
    ]
    goals = [
        Goal(
            f"Training step {label}: fastest of the others / ours",
            ratios(times[fastest], ours).middle,
            "at least",
            WANTED[label],
        )
    ]
    if label == "6 × 384":
        goals.append(
            Goal(f"Training step {label}: share of the bare product's speed", of_product.middle, "at least", 0.5)
        )
    title = f"### {label}, {config.context_len} tokens, batch {batch_size}"
    return "\n\n".join([title, table(head, rows), *lines]), goals


def training_step(settings: Settings) -> Section:
    use_all_cores()
    small, small_goals = one_size("4 × 128", *SMALL, rounds=settings.rounds, calls=10)
    large, large_goals = one_size("6 × 384", *LARGE, rounds=settings.rounds, calls=2)
    return Section("Training step", f"{small}\n\n{large}", [*large_goals, *small_goals])
