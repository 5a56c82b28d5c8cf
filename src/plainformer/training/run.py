"""A training run in its folder: it goes on where it stopped, and notes its metrics (chapter on the decoder)."""

import dataclasses
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from plainformer.data.files import PARTIAL, as_path
from plainformer.training.arrays import Location, named_arrays, with_arrays
from plainformer.training.callbacks import COLUMNS, MetricsTable
from plainformer.training.checkpoint import (
    DamagedCheckpoint,
    checkpoint_path,
    list_checkpoints,
    read_checkpoint,
    save_checkpoint,
)
from plainformer.training.identity import changes_of_a_run
from plainformer.training.notices import warn
from plainformer.training.optimiser import TrainingConfig


class Run:
    """A training run: its `metrics` so far and, if it has a directory, its checkpoints and `metrics.csv` there.

    Its `identity` is what must be the same when it goes on. Used in a `with` statement, at whose end another process
    may train there.
    """

    speaks = True  # whether this process shows progress and calls callbacks

    def __init__(self, directory: Location | None, identity: dict):
        self.directory: Any = None if directory is None else _folder(directory)
        self.identity = identity
        self.metrics: list[dict] = []
        self.saved = 0  # how many steps are in the newest checkpoint
        self._best: tuple[float, int] | None = None  # the lowest validation loss, and after which step it was
        self._since_best = 0  # how many evaluations came after it
        self._table: Any = None if self.directory is None else MetricsTable(self.directory / "metrics.csv")
        self._measured = set(COLUMNS[:4])  # what training itself notes of a step
        self._held = ExitStack()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error) -> None:
        self._held.__exit__(*error)

    def resume(self, state, config: TrainingConfig) -> tuple[Any, TrainingConfig]:
        """Return the newest state that was saved, or else `state`; and `config` with the warm-up that the run had."""
        if self.directory is None:
            return state, config
        cannot = self._try_to_write(self._take_lock)
        if list_checkpoints(self.directory):
            arrays, metadata = self._newest_whole(named_arrays(state))
            self.metrics = metadata.pop("metrics", [])
            for row in self.metrics:
                self._compare(row)
            config = self._with_first_warmup(config, metadata)
            self._check_same(metadata, arrays, named_arrays(state), config.num_steps)
            state, self.saved = with_arrays(state, arrays), len(self.metrics)
        cannot = cannot or self._try_to_write(lambda: self._table.write(self.metrics))  # before the first step is made
        if cannot and self.saved < config.num_steps:  # the folder of a finished run may be read-only by now
            hint = "Is a file in the way, the disk full, or the folder read-only?"
            raise OSError(f"Cannot write in {self.directory}: {cannot}. {hint}") from cannot
        return state, config

    def _try_to_write(self, act) -> OSError | None:
        try:
            act()
        except BlockingIOError:
            raise  # another run is there, and may be writing
        except OSError as error:
            return error
        return None

    def _take_lock(self) -> None:
        import portalocker

        self.directory.mkdir(parents=True, exist_ok=True)
        file = self._held.enter_context((self.directory / f"{PARTIAL}lock").open("a"))
        try:  # the system lets go of the lock when the file is closed or the process ends, however it ends
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.AlreadyLocked as error:
            raise BlockingIOError(
                f"Another run trains in {self.directory}; expected a folder that no other run uses. Wait until it "
                "has ended, or train into another directory."
            ) from error
        except portalocker.LockException as error:
            hint = "Let no other run train there at the same time."
            warn(f"The file system of {self.directory} has no locks: {error}. {hint}")

    def _newest_whole(self, like: dict) -> tuple[dict, dict]:
        """The arrays and the metadata of the newest checkpoint that is not damaged; those that are, are put aside."""
        damaged: dict[Path, DamagedCheckpoint] = {}
        for step in reversed(list_checkpoints(self.directory)):
            newest = checkpoint_path(self.directory, step)
            try:
                arrays, metadata, _ = read_checkpoint(self.directory, step, like)
            except DamagedCheckpoint as error:
                damaged[newest] = error
                continue
            if damaged:
                self._put_aside([*damaged], newest)
            return arrays, metadata
        reasons = "; ".join(f"{path.name}: {error.__cause__}" for path, error in damaged.items())
        raise DamagedCheckpoint(
            f"All checkpoints in {self.directory} are damaged, so that no run can go on there ({reasons}). To start "
            "anew, train into another directory, or delete these files."
        )

    def _put_aside(self, damaged: list[Path], newest: Path) -> None:
        for path in damaged:
            warn(f"{path} is damaged: training goes on from {newest.name}.")
            with suppress(OSError):  # the folder of a finished run may be read-only
                path.replace(path.with_suffix(".damaged"))

    def _with_first_warmup(self, config: TrainingConfig, then: dict) -> TrainingConfig:
        """The configuration with the warm-up that the run began with, if it has the default: it warms up once."""
        first = then.get("training", {}).get("warmup_steps")
        if config.warmup_steps is not None or first is None:
            return config
        if "warmup_steps" in self.identity["training"]:
            self.identity["training"]["warmup_steps"] = first
        return dataclasses.replace(config, warmup_steps=first) if first < config.num_steps else config

    def _check_same(self, then: dict, arrays: dict, state: dict, num_steps: int) -> None:
        there = f"The checkpoints in {self.directory} are"
        if then.keys() | {"scales"} != self.identity.keys():  # which earlier versions did not save
            raise ValueError(f"{there} not of fit; train into another directory.")
        if changes := changes_of_a_run(then, self.identity, arrays, state):
            raise ValueError(
                f"{there} of another run: {', '.join(changes)}. Train into another directory, or go on with "
                "the old configuration, data, batch size and seed of the batches, the old optimiser and `trainable`."
            )
        if len(self.metrics) > num_steps:
            raise ValueError(
                f"{there} of {len(self.metrics)} steps; expected at most num_steps={num_steps}. "
                "Train into another directory, or for more steps."
            )

    def save(self, state, max_to_keep: int) -> None:
        """Save a checkpoint after the last step that has metrics, unless there is no directory, or it is there."""
        if self.directory is None or self.saved == len(self.metrics):
            return
        self._save(state, {**self.identity, "metrics": self.metrics}, max_to_keep)
        self.saved = len(self.metrics)
        self._write_table()

    def _save(self, state, metadata: dict, max_to_keep: int) -> Path:
        step, kept = len(self.metrics), self._kept
        return save_checkpoint(self.directory, step, tuple(state), metadata, max_to_keep=max_to_keep, also_keep=kept)

    def agreed(self, stop: int) -> int:
        """Whether to stop after this step, and why, if this process would: the largest of such numbers, 0 for no."""
        return stop

    @property
    def is_best(self) -> bool:
        """Whether the last step has the lowest validation loss so far."""
        return self._best is not None and self._best[1] == len(self.metrics)

    def has_stalled(self, patience: int | None) -> bool:
        """Whether so many evaluations came after the best."""
        return patience is not None and self._since_best >= patience

    @property
    def _kept(self) -> list[int]:
        """The step whose checkpoint stays, however old it is."""
        return [] if self._best is None else [self._best[1]]

    def _compare(self, row: dict) -> None:
        """Note whether a step is the best so far, if it was evaluated."""
        if (loss := row.get("validation_loss")) is None:
            return
        self._since_best += 1
        if self._best is None or loss < self._best[0]:
            self._best, self._since_best = (loss, row["step"]), 0

    def _write_table(self) -> None:
        try:
            self._table.write(self.metrics)
        except OSError as error:  # it may be open in another program; the checkpoint has the metrics, too
            warn(f"Cannot write {self.directory}/metrics.csv: {error}.")

    def note(self, step: int, measured: dict) -> None:
        """Take up what a step has measured, and stop at once if it is not finite."""
        self.metrics.append({"step": step, **{name: float(number) for name, number in measured.items()}})
        self._measured |= measured.keys()
        self._check_finite()

    @contextmanager
    def saving_at_an_error(self, state, max_to_keep: int) -> Iterator[None]:
        """Save what was learned before an error goes on, but for one that says that the numbers are no good."""
        try:
            yield
        except FloatingPointError:
            raise
        except Exception:
            self.save(state, max_to_keep)
            raise

    def note_evaluation(self, found) -> None:
        """Add what `evaluate` returned to the metrics of the last step, and stop at once if its loss is not finite."""
        found = found if isinstance(found, dict) else {"validation_loss": found}
        row = self.metrics[-1]
        for name, number in found.items():
            if not isinstance(name, str) or not hasattr(number, "__float__") or np.ndim(number):
                expected = "expected a number, or a dictionary of numbers by name"
                raise TypeError(f"evaluate returned {number!r} as {name!r}; {expected}.")
            if name in self._measured:
                raise ValueError(f"evaluate returned {name!r}, which training itself measures; choose another name.")
        row |= {name: float(number) for name, number in found.items()}
        self._check_finite()
        self._compare(row)
        if self.saved == len(self.metrics):  # the step was saved before, as where the batches ended early
            self._write_table()

    def where_it_stopped(self, num_steps: int) -> str:
        """Say after which step a run has stopped, and where it was saved."""
        where = f"saved in {self.directory}. Call fit again with the same arguments to go on"
        if self.directory is None:
            where = "nothing was saved, as no directory was given; the model is in the error's result.model"
        return f"Stopped after step {len(self.metrics)} of {num_steps}; {where}."

    def _check_finite(self) -> None:
        """A gradient that is not finite spoils the weights: the loss would show it a step, or a checkpoint, later."""
        row, steps = self.metrics[-1], []
        bad = [name for name in ("loss", "gradient_norm", "validation_loss") if not math.isfinite(row.get(name, 0))]
        if not bad:
            return
        if self.directory is not None:
            self._table.write(self.metrics)
            steps = list_checkpoints(self.directory)
        # A loss is that of the weights before the step, a validation loss that of those after it.
        good = [step for step in steps if step < row["step"] - (bad[0] != "validation_loss")]
        last = "no good checkpoint was saved"
        if good:
            last = f"the last good checkpoint is {checkpoint_path(self.directory, good[-1])}"
        cause = ""
        if len(good) < len(steps):
            cause = f"; the weights in {checkpoint_path(self.directory, steps[-1]).name} gave it"
        where = ", in another directory: a run goes on with its old configuration only." if steps else "."
        raise FloatingPointError(
            f"The {bad[0]} is {row[bad[0]]} at step {row['step']}; {last}{cause}. "
            f"Try a smaller learning rate, a longer warm-up, or clip_norm{where}"
        )


def _folder(directory: Location) -> Path:
    if str(directory) == "" or "://" in str(directory) or "\0" in str(directory):
        raise ValueError(f"directory is {str(directory)!r}; expected a folder of this machine, such as 'run'.")
    return as_path(directory).resolve()
