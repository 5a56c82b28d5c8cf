"""Training steps of any model, ours and those of PyTorch: what the parts on training share.

All train with AdamW, weight decay of matrices, a cosine schedule and clipping, in float32, on all cores, and wait for
the loss, as a loop that shows it does. Each takes a few steps at a stretch before it is another's turn.
"""

import time

import equinox as eqx
import jax
import torch

import plainformer as pf
from benchmarks.report import Goal, say, table
from benchmarks.timing import in_turn, milliseconds, ratios

TRAINING = pf.TrainingConfig(num_steps=100_000)


def our_training(model, loss_function, batch, training=TRAINING):
    """A function without arguments that trains for one step, and the compiled step itself with its first arguments."""
    params, static = eqx.partition(model, eqx.is_inexact_array)
    opt_state = pf.training.make_optimiser(training).init(params)
    train_step = pf.training.make_train_step(loss_function, static, training)
    first, step = (params, opt_state, batch), 0

    def run():
        nonlocal params, opt_state, step
        params, opt_state, metrics = train_step(params, opt_state, batch, step)
        step += 1
        jax.block_until_ready(params)
        return float(metrics["loss"])

    return run, (train_step, *first)


def torch_training(model, loss_of, batch, compiled: bool):
    """The same for a PyTorch model: `loss_of` takes the tensors of the batch."""
    optimiser = torch_optimiser(model, TRAINING)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, TRAINING.num_steps)
    loss_of = torch.compile(loss_of) if compiled else loss_of
    model.train()

    def run():
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), TRAINING.clip_norm)
        optimiser.step()
        schedule.step()
        return loss.item()

    return run


def torch_optimiser(model, training: pf.TrainingConfig) -> torch.optim.Optimizer:
    """PyTorch's AdamW as ours is: weight decay of matrices, none of vectors."""
    return torch.optim.AdamW(
        [
            {"params": [weight for weight in model.parameters() if weight.ndim >= 2]},
            {"params": [weight for weight in model.parameters() if weight.ndim < 2], "weight_decay": 0.0},
        ],
        lr=training.learning_rate,
        betas=(training.beta_1, training.beta_2),
        weight_decay=training.weight_decay,
        fused=True,
    )


def those_that_run(runs: dict) -> tuple[dict[str, float], list[str]]:
    """Run each once: the seconds that the first call took of those that work, and a line about each that does not.

    Raises:
        RuntimeError: unless the first of them, ours, works, and another beside it.
    """
    first, lines = {}, []
    for name, run in runs.items():
        start = time.perf_counter()
        try:
            run()
        except Exception as error:  # such as no C++ compiler for torch.compile; the others still count
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            lines.append(f"{name}: not measured, it failed ({type(error).__name__}: {reason[:200]}).")
            say(lines[-1])
            continue
        first[name] = time.perf_counter() - start
        say(f"{name}: first call after {first[name]:.1f} s")
    if next(iter(runs)) not in first or len(first) < 2:
        raise RuntimeError("Nothing to compare: " + " ".join(lines))
    return first, lines


def step_rows(times: dict, first: dict, more: dict | None = None) -> list[list]:
    """A row of a table for each that ran: its time, that time by ours, what `more` has of it, and its first step."""
    ours = next(iter(first))
    by_ours = {name: "" if name == ours else ratios(times[name], times[ours]).show(2) for name in first}
    return [
        [name, milliseconds(times[name]), by_ours[name], *(more or {}).get(name, []), f"{seconds:.1f}"]
        for name, seconds in first.items()
    ]


def share_of_fastest(label: str, times: dict, first: dict) -> Goal:
    """Our speed by that of the fastest of the others, of which three quarters are wanted."""
    ours, *others = first
    shares = (ratios(times[name], times[ours]).middle for name in others)
    return Goal(f"{label}: share of the fastest other library's speed", min(shares), "at least", 0.75)


def against(label: str, title: str, runs: dict, rounds: int, calls: int) -> tuple[str, Goal]:
    """Time steps in turn, ours the first of `runs`, and hold the others against it: a table, and our share."""
    say(title)
    first, lines = those_that_run(runs)
    times = in_turn({name: runs[name] for name in first}, rounds, calls=calls)
    head = ["", "ms per step", "time by ours", "first step, s"]
    shown = table(head, step_rows(times, first))
    return "\n\n".join([f"### {title}", shown, *lines]), share_of_fastest(label, times, first)
