"""What is kept of a training run on disk, so that it can be stopped, killed and gone on with (chapter 06)."""

import csv
import dataclasses
import io
import json
import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from plainformer.data.files import PARTIAL, append_text, write_text
from plainformer.training.optimiser import TrainingConfig, num_warmup_steps
from plainformer.training.saving import (
    DamagedCheckpoint,
    Location,
    differences,
    file_name,
    list_checkpoints,
    named_arrays,
    read_checkpoint,
    save_checkpoint,
    to_json,
    with_arrays,
)

# What may change between runs: how often things happen, which changes no numbers, and when it ends.
FREE = {"evaluate_every", "checkpoint_every", "max_to_keep", "num_steps"}
COLUMNS = ["step", "loss", "gradient_norm", "learning_rate", "validation_loss"]


class Run:
    """A training run: its `metrics` so far and, if it has a directory, its checkpoints and `metrics.csv` there.

    Its `config` is the one given, with the warm-up that the run began with if it goes on. Used in a `with` statement,
    at whose end another process may train there.
    """

    def __init__(self, directory: Location | None, config: TrainingConfig, described: dict):
        self.directory: Any = None if directory is None else _folder(directory)
        self.config = config
        training = {name: value for name, value in plain_fields(config).items() if name not in FREE}
        training["warmup_steps"] = num_warmup_steps(config)
        self.described = {**described, "training": training}  # what must be the same when it goes on
        self.metrics: list[dict] = []
        self.saved = self.written = 0  # how many steps are in the newest checkpoint, and in metrics.csv
        self.columns: list[str] = []
        self._measured = set(COLUMNS[:4])  # what training itself notes of a step
        self._lock = ExitStack()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_) -> None:
        self._lock.close()

    def resume(self, state):
        """Return the newest state that was saved, or else `state`; take up its metrics."""
        if self.directory is None:
            return state
        cannot = self._try_to_write(self._take_lock)
        if list_checkpoints(self.directory):
            arrays, metadata = self._newest_whole()
            self.metrics = metadata.pop("metrics", [])
            self._check_same(metadata, arrays, named_arrays(state))
            state, self.saved = with_arrays(state, arrays), len(self.metrics)
        cannot = cannot or self._try_to_write(self._write_csv)  # now rather than at the first save
        if cannot and self.saved < self.config.num_steps:  # the folder of a finished run may be read-only by now
            hint = "Is a file in the way, the disk full, or the folder read-only?"
            raise OSError(f"Cannot write in {self.directory}: {cannot}. {hint}") from cannot
        return state

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
        file = self._lock.enter_context((self.directory / f"{PARTIAL}lock").open("a"))
        try:  # the system lets go of the lock when the file is closed or the process ends, however it ends
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.AlreadyLocked as error:
            raise BlockingIOError(
                f"Another run trains in {self.directory}; expected a folder that no other run uses. Wait until it "
                "has ended, or train into another directory."
            ) from error
        except portalocker.LockException as error:
            hint = "Let no other run train there at the same time."
            warnings.warn(f"The file system of {self.directory} has no locks: {error}. {hint}", stacklevel=6)

    def _newest_whole(self) -> tuple[dict, dict]:
        """The arrays and the metadata of the newest checkpoint that is not damaged; those that are, are put aside."""
        damaged: dict[Path, DamagedCheckpoint] = {}
        for step in reversed(list_checkpoints(self.directory)):
            try:
                arrays, metadata, _ = read_checkpoint(self.directory, step)
            except DamagedCheckpoint as error:
                damaged[self.directory / file_name(step)] = error
                continue
            for path in damaged:
                warnings.warn(f"{path} is damaged: training goes on from {file_name(step)}.", stacklevel=5)
                with suppress(OSError):  # the folder of a finished run may be read-only
                    path.replace(path.with_suffix(".damaged"))
            return arrays, metadata
        reasons = "; ".join(f"{path.name}: {error.__cause__}" for path, error in damaged.items())
        raise DamagedCheckpoint(
            f"All checkpoints in {self.directory} are damaged, so that no run can go on there ({reasons}). To start "
            "anew, train into another directory, or delete these files."
        )

    def _check_same(self, then: dict, arrays: dict, state: dict) -> None:
        now, there = self.described, f"The checkpoints in {self.directory} are"
        if then.keys() != now.keys():
            raise ValueError(f"{there} not of fit; train into another directory.")
        self._keep_warmup(then["training"].get("warmup_steps"))
        changes = [change for part in ("model", "training") for change in _changes(then[part], now[part])]
        if then["first_batch"] != now["first_batch"]:
            changes.append("the first batch is another one now")
        parts = _changed_parts(arrays, state) if then["model"] == now["model"] else []
        if then["frozen"] != now["frozen"] and not parts:
            changes.append("what is not trained has other numbers now")
        changes += parts
        if changes or (wrong := differences(arrays, state)):
            raise ValueError(
                f"{there} of another run: {', '.join(changes) or wrong}. Train into another directory, or go on with "
                "the old configuration, data, batch size and seed of the batches, the old optimiser and `trainable`."
            )
        if len(self.metrics) > self.config.num_steps:
            raise ValueError(
                f"{there} of {len(self.metrics)} steps; expected at most num_steps={self.config.num_steps}. "
                "Train into another directory, or for more steps."
            )

    def _keep_warmup(self, begun: int | None) -> None:
        """Let the default warm-up be that which the run began with: for more steps, it would warm up once more."""
        if self.config.warmup_steps is None:
            self.described["training"]["warmup_steps"] = begun
            if begun is not None and begun < self.config.num_steps:
                self.config = dataclasses.replace(self.config, warmup_steps=begun)

    def save(self, state) -> None:
        """Save a checkpoint after the last step that has metrics, unless there is no directory, or it is there."""
        if self.directory is None or self.saved == len(self.metrics):
            return
        metadata = {**self.described, "metrics": self.metrics}
        save_checkpoint(self.directory, len(self.metrics), tuple(state), metadata, max_to_keep=self.config.max_to_keep)
        self.saved = len(self.metrics)
        self._write_csv_or_warn()

    def _write_csv_or_warn(self) -> None:
        try:
            self._write_csv()
        except OSError as error:  # it may be open in another program; the checkpoint has the metrics, too
            self.columns = []  # so that it is written anew
            warnings.warn(f"Cannot write {self.directory}/metrics.csv: {error}.", stacklevel=5)

    def _write_csv(self) -> None:
        """Append to `metrics.csv` the steps that it does not hold; write it anew at first, and for a new column."""
        names = dict.fromkeys(COLUMNS + [name for row in self.metrics for name in row])
        is_new = list(names) != self.columns or not (self.directory / "metrics.csv").is_file()
        if is_new:
            self.columns, self.written = list(names), 0
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(self.metrics[self.written :])
        write = write_text if is_new else append_text
        write(self.directory / "metrics.csv", text.getvalue())
        self.written = len(self.metrics)

    def note(self, step: int, measured: dict) -> None:
        """Take up what a step has measured, and stop at once if it is not finite."""
        self.metrics.append({"step": step, **{name: float(number) for name, number in measured.items()}})
        self._measured |= measured.keys()
        self._check_finite()

    @contextmanager
    def saved_if_this_fails(self, state) -> Iterator[None]:
        """Save what was learned before an error goes on, but for one that says that the numbers are no good."""
        try:
            yield
        except FloatingPointError:
            raise
        except Exception:
            self.save(state)
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
        if self.directory is not None and self.written == len(self.metrics):  # where batches ended early
            self.columns = []  # so that it is written anew
            self._write_csv_or_warn()

    def farewell(self) -> str:
        """Say after which step a run has stopped, and where it was saved."""
        where = f"saved in {self.directory}. Call fit again with the same arguments to go on"
        if self.directory is None:
            where = "nothing was saved, as no directory was given; the model is in the error's result.model"
        return f"Stopped after step {len(self.metrics)} of {self.config.num_steps}; {where}."

    def _check_finite(self) -> None:
        """A gradient that is not finite spoils the weights: the loss would show it a step, or a checkpoint, later."""
        row, steps = self.metrics[-1], []
        bad = [name for name in ("loss", "gradient_norm", "validation_loss") if not math.isfinite(row.get(name, 0))]
        if not bad:
            return
        if self.directory is not None:
            self._write_csv()
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


def _folder(directory: Location) -> Path:
    if str(directory) == "" or "://" in str(directory) or "\0" in str(directory):
        raise ValueError(f"directory is {str(directory)!r}; expected a folder of this machine, such as 'run'.")
    return Path(directory).expanduser().resolve()


def plain_fields(config) -> dict:
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


def _changed_parts(then: dict, now: dict) -> list[str]:
    """What else is trained, and what else the optimiser remembers, by the names of the arrays of two states."""
    (trained, remembered), (trained_now, remembered_now) = _parts(then), _parts(now)
    changes = []
    for names, change in (
        (trained - trained_now, "was trained and is not"),
        (trained_now - trained, "was not trained and is now"),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            changes.append(f"{min(names)}{more} {change}")
    if remembered != remembered_now:
        before, after = (", ".join(sorted(names)) or "nothing" for names in (remembered, remembered_now))
        changes.append(f"the optimiser is another one now, as it remembered {before}, and now {after}")
    return changes


def _parts(names: Iterable[str]) -> tuple[set[str], set[str]]:
    """What is trained, and what the optimiser remembers: `0.mu` for the averages `0.mu.bias` and `0.mu.weight`."""
    trained = {place for number, _, place in (name.partition(".") for name in names) if number == "0"}
    remembered = set()
    for number, *words in (name.split(".") for name in names):
        ends = [end for end in range(len(words)) if ".".join(words[end:]) in trained]
        if number == "1":
            remembered.add(".".join(words[: min(ends, default=len(words))]))
    return trained, remembered
