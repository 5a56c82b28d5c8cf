"""Training: one loop that can be stopped, killed and resumed (chapter 06)."""

import csv
import io
import json
import math
import signal
import tempfile
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

from plainformer.data.files import write_text
from plainformer.training.checkpoints import Directory, list_checkpoints, load_checkpoint, save_checkpoint
from plainformer.training.memory import keep_freed_memory
from plainformer.training.optimiser import TrainingConfig, learning_rate_schedule, new_optimiser
from plainformer.training.trees import config_dict, digest, named_arrays

FREE = {"evaluate_every", "checkpoint_every", "keep"}  # what may change between runs, as it changes no numbers


class FitResult(NamedTuple):
    """What `fit` returns: the trained `model`, and `metrics`, one dictionary per step."""

    model: eqx.Module
    metrics: list[dict]


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; it says where it was saved, and carries the `result` so far, a `FitResult`."""

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

    On Linux the process keeps memory that it has freed from then on, which makes the steps faster.

    **Arguments**

    - `model`: any `eqx.Module`; all its floating-point arrays are trained.
    - `loss_function`: from model, batch and random key to a scalar, such as `next_token_loss`.
    - `batch_at`: from the number of steps done to the next batch, a tuple of arrays whose first axis is the batch; the
      same number must always give the same batch, such as `windows_at` does.
    - `config`: how to train.
    - `evaluate`: from model to a loss on fixed data that the model is not trained on; `None` for none.
    - `directory`: where to save checkpoints and `metrics.csv`. If it holds checkpoints of this very run, with the same
      model, configuration and first batch, training goes on from the newest, and ends as if it had never been
      interrupted; the weights of `model` do not matter then. To train a trained model further, take another directory.
      `None` saves nothing.
    - `progress`: whether to show a progress bar with loss, tokens per second and time left.

    **Returns** the trained model and the metrics of every step: `step` (steps done), `loss` (on its batch, before it),
    `gradient_norm` (before clipping), `learning_rate` and, where evaluated, `validation_loss` (after it).

    **Raises** `TrainingInterrupted` on Ctrl-C, after the step and after saving; a second Ctrl-C stops at once.
    `FloatingPointError` as soon as a loss, a validation loss or a gradient is NaN or infinite, which leaves older
    checkpoints as they are; `ValueError` if a checkpoint is of another run; `OSError` before the first step if the
    directory cannot be written, or later if saving fails; `TypeError` if JSON cannot hold the model's configuration,
    which is saved, too.
    """
    from tqdm import tqdm  # not tqdm.auto, which warns in notebooks without widgets

    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    # Copied, since a step writes its results where its arguments lay: the caller's model stays as it is.
    state = jax.tree.map(jnp.copy, (weights, new_optimiser(config).init(weights)))
    metrics: list[dict] = []
    start = 0
    if directory is not None:
        directory = Path(directory).expanduser().resolve()
        notes = _notes(model, config, batch_at)
        if list_checkpoints(directory):
            state, metrics, start = _resume(directory, state, notes)
        if start < config.num_steps:
            _check_writable(directory)
    step_once = _compiled_step(loss_function, rest, config)
    saved = start

    def save(step):
        nonlocal saved
        if directory is not None and step > saved:
            save_checkpoint(directory, step, state, {**notes, "metrics": metrics}, keep=config.keep)
            _write_csv(directory, metrics)
            saved = step

    bar = tqdm(range(start, config.num_steps), initial=start, total=config.num_steps, disable=not progress, unit="step")
    with _signal_noted() as interrupted, bar:
        for step in bar:
            batch = batch_at(step)
            state, measured = step_once(state, batch, step)
            done = step + 1
            metrics.append({"step": done, **{name: float(number) for name, number in measured.items()}})
            _check_finite(metrics, directory)
            if evaluate is not None and (done % config.evaluate_every == 0 or done == config.num_steps):
                # A copy, since the next step writes over the weights, and whoever evaluates may keep the model.
                copy = eqx.combine(jax.tree.map(jnp.copy, state[0]), rest)
                metrics[-1]["validation_loss"] = float(evaluate(copy))
                _check_finite(metrics, directory)
            bar.set_postfix(loss=f"{metrics[-1]['loss']:.3f}", tokens_per_s=_rate(bar, batch), refresh=False)
            if done % config.checkpoint_every == 0 or done == config.num_steps:
                save(done)
            if interrupted.is_set():
                save(done)
                where = f"saved in {directory}. Call fit again with the same arguments to go on"
                if directory is None:
                    where = "nothing was saved, as no directory was given; the model is in the error's result.model"
                raise TrainingInterrupted(
                    f"Stopped after step {done} of {config.num_steps}; {where}.",
                    FitResult(eqx.combine(state[0], rest), metrics),
                )
    return FitResult(eqx.combine(state[0], rest), metrics)


def _compiled_step(loss_function, rest, config: TrainingConfig):
    """One change of the weights: from state, batch and number of steps done to the next state and its metrics."""
    import optax

    keep_freed_memory()
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


def _check_writable(directory: Path) -> None:
    """Find out before the first step rather than at the first save. Only writing tells, not what the rights say."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as probe:
            probe.write(b"probe")
    except OSError as error:
        raise OSError(
            f"Cannot write in {directory}: {error}. Expected a folder for checkpoints, or a place to make one: "
            "is a file in the way, the disk full, or the folder read-only?"
        ) from error


def _check_finite(metrics: list[dict], directory: Path | None) -> None:
    """A gradient that is not finite spoils the weights: the loss would show it one step, or one checkpoint, later."""
    row = metrics[-1]
    bad = [name for name in ("loss", "gradient_norm", "validation_loss") if not math.isfinite(row.get(name, 0))]
    if not bad:
        return
    steps: list[int] = []
    if directory is not None:
        _write_csv(directory, metrics)
        steps = list_checkpoints(directory)
    folders = [f"{directory}/{step}" for step in steps]
    if not steps:
        last = "nothing was saved before"
    elif steps[-1] == row["step"] - 1 and bad[0] != "validation_loss":
        before = f"the one before is {folders[-2]}" if len(folders) > 1 else "there is none before"
        last = f"the weights in the newest checkpoint, {folders[-1]}, gave it, and {before}"
    else:
        last = f"the last good checkpoint is {folders[-1]}"
    where = ", in another directory: a run goes on with its old configuration only." if steps else "."
    raise FloatingPointError(
        f"The {bad[0]} is {row[bad[0]]} at step {row['step']}; {last}. "
        f"Try a smaller learning rate, a longer warm-up, or clip_norm{where}"
    )


def _notes(model, config, batch_at) -> dict:
    """What a checkpoint says about its run, as JSON gives it back: lists for tuples."""
    settings = config_dict(model.config) if is_dataclass(getattr(model, "config", None)) else {}
    notes = {
        "model": {"model": type(model).__name__, **settings},
        "training": config_dict(config),
        "first_batch": digest(named_arrays(batch_at(0))),
    }
    return json.loads(json.dumps(notes))


def _resume(directory, state, expected):
    state, notes, step = load_checkpoint(directory, state)
    metrics = notes.pop("metrics", None)
    if set(notes) != set(expected):
        raise ValueError(f"The checkpoints in {directory} are not of fit; train into another directory.")
    changed = _changes(notes["model"], expected["model"]) + _changes(notes["training"], expected["training"], FREE)
    if changed:
        raise ValueError(
            f"The checkpoints in {directory} are of another run: {', '.join(changed)}. "
            "Train into another directory, or go on with the old configuration."
        )
    if notes["first_batch"] != expected["first_batch"]:
        raise ValueError(
            f"The checkpoints in {directory} are of another run: batch_at(0) is another batch now. "
            "Train into another directory, or go on with the old data, batch size and seed of the batches."
        )
    _write_csv(directory, metrics)  # it may have been stopped before it wrote them
    return state, metrics, step


def _changes(then: dict, now: dict, free=()) -> list[str]:
    names = [name for name in {**now, **then} if name not in free and now.get(name) != then.get(name)]
    return [f"{name} was {then.get(name)} and is {now.get(name)}" for name in names]


def _write_csv(directory: Path, metrics) -> None:
    columns = ["step", "loss", "gradient_norm", "learning_rate", "validation_loss"]
    text, path = io.StringIO(), directory / "metrics.csv"
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(metrics)
    # A finished run is read again without being written: its folder may be read-only by now.
    if not path.is_file() or path.read_bytes() != text.getvalue().encode():
        write_text(path, text.getvalue())


def _rate(bar, batch) -> str:
    """Tokens, or other entries of the first array in the batch, per second; the mean as long as the bar knows none."""
    if bar.disable:
        return ""
    rate = bar.format_dict["rate"] or (bar.n + 1 - bar.initial) / bar.format_dict["elapsed"]
    return f"{rate * jax.tree.leaves(batch)[0].size:,.0f}"


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
