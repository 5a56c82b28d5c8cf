"""One training step: ours against a plain PyTorch GPT and `transformers`' GPT-2, each eager and compiled.

All train the same model (exact GELU, tied embedding, no dropout), in the way that `steps` describes.
"""

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

import plainformer as pf
from benchmarks.gpt2 import new_gpt2
from benchmarks.hardware import gigaflops, products, use_all_cores
from benchmarks.report import Goal, Section, Settings, say, table
from benchmarks.steps import our_training, share_of_fastest, step_rows, those_that_run, torch_training
from benchmarks.timing import in_turn, ratios, spread
from benchmarks.torch_gpt import GPT

# With the size of a batch.
SMALL = (pf.DecoderConfig(65, 64, pf.StackConfig(d_model=128, num_layers=4, num_heads=4)), 12)
LARGE = (pf.DecoderConfig(65, 256, pf.StackConfig(d_model=384, num_layers=6, num_heads=6)), 8)


def new_batch(config: pf.DecoderConfig, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(0).integers(config.vocab_size, size=(batch_size, config.context_len + 1))
    return ids[:, :-1], ids[:, 1:]


def our_step(config: pf.DecoderConfig, batch):
    """A function without arguments that trains for one step, and the compiled step itself with its first arguments."""
    batch = pf.data.Windows(*(jnp.asarray(array, jnp.int32) for array in batch))
    return our_training(pf.Decoder(config, key=jax.random.key(0)), pf.training.next_token_loss, batch)


def torch_step(model, batch, compiled: bool):
    """The same for a PyTorch model, or for one of `transformers`."""
    of_transformers = hasattr(model, "transformer")

    def loss_of(inputs, targets):
        logits = model(inputs, use_cache=False).logits if of_transformers else model(inputs)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return torch_training(model, loss_of, [torch.tensor(array) for array in batch], compiled)


def variants(config: pf.DecoderConfig, batch_size: int) -> dict:
    """The five variants by name, not yet run."""
    batch = new_batch(config, batch_size)
    torch.manual_seed(0)
    theirs = {
        f"{name}, {'compiled' if compiled else 'eager'}": torch_step(new_model(config), batch, compiled)
        for name, new_model in (("PyTorch", GPT), ("transformers", new_gpt2))
        for compiled in (False, True)
    }
    return {"Plainformer": our_step(config, batch)[0], **theirs}


def one_size(label: str, config: pf.DecoderConfig, batch_size: int, rounds: int, calls: int, share: float):
    """Time one size: Markdown, and its speed by those of a bare product, of which `share` is wanted, and of others."""
    say(f"training step, {label}")
    runs = variants(config, batch_size)
    first, lines = those_that_run(runs)
    times = in_turn({**{name: runs[name] for name in first}, **products()}, rounds, calls=calls)
    flops = pf.training_flops(config, batch_size * config.context_len)
    speeds = {name: [flops / second / 1e9 for second in times[name]] for name in first}
    ours, *others = first
    fastest = min(others, key=lambda name: spread(times[name]).middle)
    of_product = ratios(speeds[ours], gigaflops(times["JAX product"]))
    head = ["", "ms per step", "time by ours", "GFLOP/s", "first step, s"]
    shown = table(head, step_rows(times, first, {name: [spread(speeds[name]).show(0)] for name in first}))
    lines.append(
        f"Fastest of the others: {fastest}. A step takes {flops / 1e9:.1f} GFLOP in matrix products; ours runs at "
        f"{of_product.show(2)} of JAX's bare product, {spread(gigaflops(times['JAX product'])).show(0)} GFLOP/s "
        f"(PyTorch's: {spread(gigaflops(times['PyTorch product'])).show(0)})."
    )
    title = f"### {label}, {config.context_len} tokens, batch {batch_size}"
    return "\n\n".join([title, shown, *lines]), [
        Goal(f"Training step {label}: share of the bare product's speed", of_product.middle, "at least", share),
        share_of_fastest(f"Training step {label}", times, first),
    ]


def training_step(settings: Settings) -> Section:
    use_all_cores()
    small, small_goals = one_size("4 × 128", *SMALL, rounds=settings.rounds, calls=10, share=0.35)
    large, large_goals = one_size("6 × 384", *LARGE, rounds=settings.rounds, calls=2, share=0.6)
    return Section("Training step", f"{small}\n\n{large}", [*large_goals, *small_goals])
