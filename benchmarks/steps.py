"""Training steps of any model, ours and those of PyTorch: what the parts on training share.

All train with AdamW, weight decay of matrices, a cosine schedule and clipping, in float32, on all cores, and wait for
the loss, as a loop that shows it does. Each takes a few steps at a stretch before it is another's turn.
"""

import time

import equinox as eqx
import jax
import torch
from report import Goal, say, table
from timing import in_turn, ratios, spread

import plainformer as pf
from plainformer.training.fit import _compiled_step

TRAINING = pf.TrainingConfig(num_steps=100_000)


def our_training(model, loss_function, batch):
    """A function without arguments that trains for one step, and the compiled step itself with its arguments."""
    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    state = (weights, pf.new_optimiser(TRAINING).init(weights))
    step_once = _compiled_step(loss_function, rest, TRAINING)
    step = 0

    def run():
        nonlocal state, step
        state, measured = step_once(state, batch, step)
        step += 1
        jax.block_until_ready(state)
        return float(measured["loss"])

    return run, (step_once, state, batch)


def torch_training(model, loss_of, batch, compiled: bool):
    """The same for a PyTorch model: `loss_of` takes the tensors of the batch."""
    optimiser = torch.optim.AdamW(
        [
            {"params": [weight for weight in model.parameters() if weight.ndim >= 2]},
            {"params": [weight for weight in model.parameters() if weight.ndim < 2], "weight_decay": 0.0},
        ],
        lr=TRAINING.learning_rate,
        betas=(TRAINING.beta_1, TRAINING.beta_2),
        weight_decay=TRAINING.weight_decay,
        fused=True,
    )
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


def those_that_run(runs: dict) -> tuple[dict, dict[str, float], list[str]]:
    """Run each once: those that work, the seconds that the first step took, and a line about each that does not."""
    working, first, lines = {}, {}, []
    for name, run in runs.items():
        start = time.perf_counter()
        try:
            run()
        except Exception as error:  # such as no C++ compiler for torch.compile; the others still count
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            lines.append(f"{name}: not measured, it failed ({type(error).__name__}: {reason[:200]}).")
            say(lines[-1])
            continue
        working[name], first[name] = run, time.perf_counter() - start
        say(f"{name}: first step after {first[name]:.1f} s")
    return working, first, lines


def against(label: str, title: str, runs: dict, rounds: int, calls: int) -> tuple[str, list[Goal]]:
    """Time steps in turn, ours the first of `runs`, and hold the others against it: a table, and a figure for each."""
    say(title)
    ours = next(iter(runs))
    runs, first, lines = those_that_run(runs)
    if len(runs) < 2 or ours not in runs:
        raise RuntimeError("Nothing to compare: " + " ".join(lines))
    times = in_turn(runs, rounds, calls=calls)
    rows, goals = [], []
    for name in runs:
        ms = spread(1e3 * second for second in times[name]).show(1)
        ratio = ratios(times[name], times[ours])
        rows.append([name, ms, "" if name == ours else ratio.show(2), f"{first[name]:.1f}"])
        if name != ours:
            goals.append(Goal(f"{label}: {name} / ours", ratio.middle, "at least", 1))
    head = ["", "ms per step", "time by ours", "first step, s"]
    return "\n\n".join([f"### {title}", table(head, rows), *lines]), goals
