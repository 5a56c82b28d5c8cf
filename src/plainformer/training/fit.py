"""Training: one loop that can be stopped, killed and resumed (chapter 06)."""

import csv
import dataclasses
import io
import json
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.data.files import write_text
from plainformer.training.optimiser import TrainingConfig, make_optimiser
from plainformer.training.saving import (
    Location,
    digest,
    file_name,
    list_checkpoints,
    load_checkpoint,
    named_arrays,
    save_checkpoint,
    to_json,
)
from plainformer.training.step import make_train_step

FREE = {"evaluate_every", "checkpoint_every", "max_to_keep"}  # what may change between runs, as it changes no numbers


class FitResult(NamedTuple):
    """What `fit` returns: the trained `model`, and `metrics`, one dictionary per step."""

    model: Any
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
    directory: Location | None = None,
    progress: bool = True,
) -> FitResult:
    r"""Train a model.

    **Arguments**

    - `model`: any `eqx.Module`; all its floating-point arrays are trained.
    - `loss_function`: from model, batch and random key to a scalar, such as `next_token_loss`.
    - `batch_at`: from the number of steps done to the next batch, a tuple of arrays whose first axis is the batch; the
      same number must always give the same batch, such as `random_windows` does.
    - `evaluate`: from model to a loss on fixed data that the model is not trained on.
    - `directory`: where to save checkpoints and `metrics.csv`. If it holds checkpoints of this very run, with the same
      model, configuration and first batch, training goes on from the newest, and ends as if it had never been
      interrupted, to the last bit on the same number of processor cores; the weights of `model` do not matter then. To
      train a trained model further, take another directory. `None` saves nothing.

    **Returns** the trained model and the metrics of every step: `step` (steps done), `loss` (on its batch, before it),
    `gradient_norm` (before clipping), `learning_rate` and, where evaluated, `validation_loss` (after it).

    **Raises** `TrainingInterrupted` on Ctrl-C, after the step and after saving; a second Ctrl-C stops at once.
    `FloatingPointError` as soon as a loss or a gradient is NaN or infinite; `ValueError` if a checkpoint is of another
    run; `OSError` if the directory cannot be written, found out before the first step.
    """
    from tqdm import tqdm  # not tqdm.auto, which warns in notebooks without widgets

    params, static = eqx.partition(model, eqx.is_inexact_array)
    # Copied, since a step writes its results where its arguments lay: the caller's model stays as it is.
    params = jax.tree.map(jnp.copy, params)
    run = _Run(directory, model, batch_at, config)
    (params, opt_state), metrics = run.resume((params, make_optimiser(config).init(params)))
    train_step = make_train_step(loss_function, static, config)
    start, end = len(metrics), config.num_steps
    bar = tqdm(range(start, end), initial=start, total=end, disable=not progress, unit="step")
    with _sigint_flag() as interrupted, bar:
        for step in bar:
            batch, done = batch_at(step), step + 1
            params, opt_state, measured = train_step(params, opt_state, batch, step)
            metrics.append({"step": done, **{name: float(number) for name, number in measured.items()}})
            run.check_finite(metrics)
            if evaluate is not None and (done % config.evaluate_every == 0 or done == end):
                # A copy, since the next step writes over the weights, and whoever evaluates may keep the model.
                copy = eqx.combine(jax.tree.map(jnp.copy, params), static)
                metrics[-1]["validation_loss"] = float(evaluate(copy))
                run.check_finite(metrics)
            bar.set_postfix(loss=f"{metrics[-1]['loss']:.3f}", tokens_per_s=_rate(bar, batch), refresh=False)
            stop = interrupted.is_set()
            if stop or done % config.checkpoint_every == 0 or done == end:
                run.save((params, opt_state), metrics)
            if stop:
                raise TrainingInterrupted(run.farewell(done), FitResult(eqx.combine(params, static), metrics))
    return FitResult(eqx.combine(params, static), metrics)


class _Run:
    """What is saved of a run, and where; without a directory, nothing is."""

    def __init__(self, directory: Location | None, model, batch_at, config: TrainingConfig):
        self.directory: Path | None = None
        self.config = config
        if directory is None:
            return
        if str(directory) == "" or "://" in str(directory):
            raise ValueError(f"directory is {str(directory)!r}; expected a folder of this machine, such as 'run'.")
        self.directory = Path(directory).expanduser().resolve()
        self.metadata: dict[str, Any] = {  # what must be the same when it goes on
            "model": {"model": type(model).__name__, **_plain(getattr(model, "config", None))},
            "training": {name: value for name, value in _plain(config).items() if name not in FREE},
            "first_batch": digest(named_arrays(batch_at(0))),
        }

    def resume(self, state):
        """Return the newest state that was saved and its metrics, or else `state` and no metrics."""
        metrics: list[dict] = []
        if self.directory is None:
            return state, metrics
        if list_checkpoints(self.directory):
            state, metadata, _ = load_checkpoint(self.directory, state)
            metrics = metadata.pop("metrics", [])
            self._check_same(metadata)
        try:  # now rather than at the first save; it may also have been stopped before it wrote them
            self.directory.mkdir(parents=True, exist_ok=True)
            _write_csv(self.directory, metrics)
        except OSError as error:
            if len(metrics) < self.config.num_steps:  # the folder of a finished run may be read-only by now
                hint = "Is a file in the way, the disk full, or the folder read-only?"
                raise OSError(f"Cannot write in {self.directory}: {error}. {hint}") from error
        return state, metrics

    def _check_same(self, then: dict) -> None:
        now, there = self.metadata, f"The checkpoints in {self.directory} are"
        if then.keys() != now.keys():
            raise ValueError(f"{there} not of fit; train into another directory.")
        changes = [change for part in ("model", "training") for change in _changes(then[part], now[part])]
        if then["first_batch"] != now["first_batch"]:
            changes.append("batch_at(0) is another batch now")
        if changes:
            raise ValueError(
                f"{there} of another run: {', '.join(changes)}. Train into another directory, or go on with the old "
                "configuration, data, batch size and seed of the batches."
            )

    def save(self, state, metrics: list[dict]) -> None:
        if self.directory is not None:
            metadata = {**self.metadata, "metrics": metrics}
            save_checkpoint(self.directory, len(metrics), state, metadata, max_to_keep=self.config.max_to_keep)
            _write_csv(self.directory, metrics)

    def farewell(self, done: int) -> str:
        where = f"saved in {self.directory}. Call fit again with the same arguments to go on"
        if self.directory is None:
            where = "nothing was saved, as no directory was given; the model is in the error's result.model"
        return f"Stopped after step {done} of {self.config.num_steps}; {where}."

    def check_finite(self, metrics: list[dict]) -> None:
        """A gradient that is not finite spoils the weights: the loss would show it a step, or a checkpoint, later."""
        row, steps = metrics[-1], []
        bad = [name for name in ("loss", "gradient_norm", "validation_loss") if not math.isfinite(row.get(name, 0))]
        if not bad:
            return
        if self.directory is not None:
            _write_csv(self.directory, metrics)
            steps = list_checkpoints(self.directory)
        # A loss is that of the weights before the step, a validation loss that of those after it.
        good = [step for step in steps if step < row["step"] - (bad[0] != "validation_loss")]
        last = "no good checkpoint was saved"
        if good:
            last = f"the last good checkpoint is {self.directory}/{file_name(good[-1])}"
        cause = f"; the weights in {file_name(steps[-1])} gave it" if len(good) < len(steps) else ""
        where = ", in another directory: a run goes on with its old configuration only." if steps else "."
        raise FloatingPointError(
            f"The {bad[0]} is {row[bad[0]]} at step {row['step']}; {last}{cause}. "
            f"Try a smaller learning rate, a longer warm-up, or clip_norm{where}"
        )


def _plain(config) -> dict:
    """The fields of a configuration as a checkpoint gives them back: lists for tuples, dictionaries for dataclasses."""
    return json.loads(to_json(config)) if dataclasses.is_dataclass(config) else {}


def _changes(then: dict, now: dict) -> list[str]:
    """What differs between two configurations, those within by their own names."""
    changes = []
    for name in {**now, **then}:
        old, new = then.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            changes += [f"{name}.{change}" for change in _changes(old, new)]
        elif old != new:
            changes.append(f"{name} was {old} and is {new}")
    return changes


def _write_csv(directory: Path, metrics: list[dict]) -> None:
    columns = ["step", "loss", "gradient_norm", "learning_rate", "validation_loss"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(metrics)
    write_text(directory / "metrics.csv", text.getvalue())


def _rate(bar, batch) -> str:
    """Tokens, or other entries of the first array in the batch, per second; the mean as long as the bar knows none."""
    if bar.disable:
        return ""
    rate = bar.format_dict["rate"] or (bar.n + 1 - bar.initial) / (bar.format_dict["elapsed"] or 1)
    return f"{rate * jax.tree.leaves(batch)[0].size:,.0f}"


@contextmanager
def _sigint_flag() -> Iterator[threading.Event]:
    """Let Ctrl-C set a flag instead of breaking in, so that a step or a file is never cut in two; twice breaks in."""
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
