"""Training: one loop that can be stopped, killed and resumed (chapter 06)."""

import csv
import io
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.checkpoints import Directory, list_checkpoints, load_checkpoint, save_checkpoint
from plainformer.files import write_text
from plainformer.optimisation import TrainingConfig, learning_rate_schedule, new_optimiser
from plainformer.trees import config_dict


class FitResult(NamedTuple):
    """What `fit` returns: the trained `model`, and `metrics`, one dictionary per step."""

    model: eqx.Module
    metrics: list[dict]


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; it says where it was saved, and carries the `result` so far."""

    def __init__(self, message: str, result: FitResult):
        super().__init__(message)
        self.result = result


def fit(
    model,
    loss_function: Callable,
    batch_at: Callable[[int], tuple],
    config: TrainingConfig,
    *,
    evaluate: Callable | None = None,
    directory: Directory | None = None,
    progress: bool = True,
) -> FitResult:
    r"""Train a model.

    **Arguments**

    - `model`: any `eqx.Module`; all its floating-point arrays are trained.
    - `loss_function`: from model, batch and random key to a scalar, such as `next_token_loss`.
    - `batch_at`: from the number of steps done to the next batch, a tuple of arrays whose first axis is the batch; the
      same number must always give the same batch, such as `windows_at` does.
    - `config`: how to train.
    - `evaluate`: from model to a loss on fixed data that the model is not trained on; `None` for none.
    - `directory`: where to save checkpoints and `metrics.csv`. If it holds checkpoints of this very run, training goes
      on from the newest, and ends as if it had never been interrupted. `None` saves nothing.
    - `progress`: whether to show a progress bar with loss, tokens per second and time left.

    **Returns** the trained model and the metrics of every step: `step` (steps done), `loss` (on its batch, before it),
    `gradient_norm` (before clipping), `learning_rate` and, where evaluated, `validation_loss` (after it).

    **Raises** `TrainingInterrupted` on Ctrl-C, after the step and after saving; `FloatingPointError` as soon as a loss
    or a gradient is NaN or infinite, which leaves older checkpoints as they are; `ValueError` if a checkpoint is of
    another run; `OSError` if saving fails.
    """
    from tqdm import tqdm  # not tqdm.auto, which warns in notebooks without widgets

    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    # Copied, since a step writes its results where its arguments lay: the caller's model stays as it is.
    state = jax.tree.map(jnp.copy, (weights, new_optimiser(config).init(weights)))
    metrics: list[dict] = []
    start = 0
    if directory is not None and list_checkpoints(directory):
        state, metrics, start = _resume(directory, state, model, config)
    step_once = _compiled_step(loss_function, rest, config)
    saved = start

    def save(step):
        nonlocal saved
        if directory is not None and step > saved:
            folder = save_checkpoint(directory, step, state, _notes(model, config, metrics), keep=config.keep)
            _write_csv(folder.parent / "metrics.csv", metrics)
            saved = step

    bar = tqdm(range(start, config.num_steps), initial=start, total=config.num_steps, disable=not progress, unit="step")
    with _signal_noted() as interrupted, bar:
        for step in bar:
            batch = batch_at(step)
            state, measured = step_once(state, batch, step)
            done = step + 1
            metrics.append({"step": done, **{name: float(number) for name, number in measured.items()}})
            _check_finite(metrics[-1], directory)
            if evaluate is not None and (done % config.evaluate_every == 0 or done == config.num_steps):
                # A copy, since the next step writes over the weights, and whoever evaluates may keep the model.
                copy = eqx.combine(jax.tree.map(jnp.copy, state[0]), rest)
                metrics[-1]["validation_loss"] = float(evaluate(copy))
            bar.set_postfix(loss=f"{metrics[-1]['loss']:.3f}", tokens_per_s=_rate(bar, batch), refresh=False)
            if done % config.checkpoint_every == 0 or done == config.num_steps:
                save(done)
            if interrupted.is_set():
                save(done)
                where = "nothing was saved, as no directory was given" if directory is None else f"saved in {directory}"
                raise TrainingInterrupted(
                    f"Stopped after step {done} of {config.num_steps}; {where}.",
                    FitResult(eqx.combine(state[0], rest), metrics),
                )
    return FitResult(eqx.combine(state[0], rest), metrics)


def _compiled_step(loss_function, rest, config: TrainingConfig):
    """One change of the weights: from state, batch and number of steps done to the next state and its metrics."""
    import optax

    optimiser, schedule = new_optimiser(config), learning_rate_schedule(config)
    key = jax.random.key(config.seed)

    def loss_of(weights, batch, key):
        if config.precision == "bfloat16":
            weights = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), weights)
        return loss_function(eqx.combine(weights, rest), batch, key).astype(jnp.float32)

    def mean_over_parts(weights, batch, key):
        if config.accumulate == 1:
            return jax.value_and_grad(loss_of)(weights, batch, key)
        parts = jax.tree.map(partial(_cut, parts=config.accumulate), batch)

        def add(total, part_and_number):
            part, number = part_and_number
            one = jax.value_and_grad(loss_of)(weights, part, jax.random.fold_in(key, number))
            return jax.tree.map(jnp.add, total, one), None

        zero = (jnp.zeros((), jnp.float32), jax.tree.map(jnp.zeros_like, weights))
        total, _ = jax.lax.scan(add, zero, (parts, jnp.arange(config.accumulate)))
        return jax.tree.map(lambda leaf: leaf / config.accumulate, total)

    @partial(jax.jit, donate_argnums=0)
    def step_once(state, batch, step):
        weights, memory = state
        loss, gradient = mean_over_parts(weights, batch, jax.random.fold_in(key, step))
        changes, memory = optimiser.update(gradient, memory, weights)
        metrics = {"loss": loss, "gradient_norm": optax.tree.norm(gradient), "learning_rate": schedule(step)}
        return (optax.apply_updates(weights, changes), memory), metrics

    return step_once


def _cut(array, parts: int):
    if array.shape[0] % parts:
        raise ValueError(f"A batch of {array.shape[0]} cannot be cut into accumulate={parts} equal parts.")
    return array.reshape(parts, array.shape[0] // parts, *array.shape[1:])


def _check_finite(row: dict, directory) -> None:
    """A gradient that is not finite spoils the weights: the loss would show it one step, or one checkpoint, later."""
    bad = [name for name in ("loss", "gradient_norm") if not math.isfinite(row[name])]
    if not bad:
        return
    steps = [] if directory is None else list_checkpoints(directory)
    last = f"the last good checkpoint is {Path(directory) / str(steps[-1])}" if steps else "nothing was saved before"
    raise FloatingPointError(
        f"The {bad[0]} is {row[bad[0]]} at step {row['step']}; {last}. "
        "Try a smaller learning rate, a longer warm-up, or clip_norm."
    )


def _notes(model, config, metrics) -> dict:
    settings = config_dict(model.config) if is_dataclass(getattr(model, "config", None)) else {}
    return {"model": {"model": type(model).__name__, **settings}, "training": config_dict(config), "metrics": metrics}


def _resume(directory, state, model, config):
    state, notes, step = load_checkpoint(directory, state)
    wanted = _notes(model, config, [])
    if set(notes) != set(wanted):
        raise ValueError(f"The checkpoints in {directory} are not of fit; train into another directory.")
    # What would change the numbers may not change between runs.
    free = {"evaluate_every", "checkpoint_every", "keep"}
    now, then = ({**notes["model"], **notes["training"]} for notes in (wanted, notes))
    changed = [name for name in now if name not in free and now[name] != then.get(name)]
    if changed:
        said = ", ".join(f"{name} was {then.get(name)} and is {now[name]}" for name in changed)
        raise ValueError(
            f"The checkpoints in {directory} are of another run: {said}. "
            "Train into another directory, or go on with the old configuration."
        )
    _write_csv(Path(directory) / "metrics.csv", notes["metrics"])  # it may have been stopped before it wrote them
    return state, notes["metrics"], step


def _write_csv(path, metrics) -> None:
    columns = ["step", "loss", "gradient_norm", "learning_rate", "validation_loss"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(metrics)
    write_text(path, text.getvalue())


def _rate(bar, batch) -> str:
    """Tokens, or other entries of the first array in the batch, per second."""
    rate = bar.format_dict["rate"]
    return "?" if rate is None else f"{rate * jax.tree.leaves(batch)[0].size:,.0f}"


@contextmanager
def _signal_noted() -> Iterator[threading.Event]:
    """Let Ctrl-C set a mark instead of breaking in, so that a step or a file is never cut in two; twice breaks in."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread may say what a signal does
        return

    def note(number, frame):
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
