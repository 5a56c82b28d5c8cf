"""The checkpoints of a training run: each whole or not at all (chapter on the decoder)."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import jax

from plainformer.checks import Natural, Positive, checked
from plainformer.data.files import as_path, parse_json, write_bytes
from plainformer.training.arrays import (
    Location,
    differences,
    digest,
    lies_here,
    named_arrays,
    read_arrays,
    to_bytes,
    to_json,
    with_arrays,
)
from plainformer.training.identity import other_scales, scales_of
from plainformer.training.sharded_checkpoint import delete_folder, folder_name, list_folders, read_folder, save_folder


class DamagedCheckpoint(ValueError):
    """A checkpoint is not as it was saved."""


@checked
def save_checkpoint(
    directory: Location,
    step: Natural,
    state,
    metadata: dict,
    *,
    max_to_keep: Positive = 3,
    also_keep: Collection[int] = (),
) -> Path:
    r"""Save the state of a training run, whole or not at all, and delete all checkpoints but those of the most steps.

    Where several processes hold the state together, all of them have to call this, and write a folder by orbax.

    Args:
        directory: where the checkpoints of this run lie, such as `000250.safetensors`, or `000250` if several processes
            write it; made if missing.
        step: how many steps the state has behind it.
        state: a tree of arrays.
        metadata: what else to keep with it, such as configurations and losses; whatever JSON can hold.
        max_to_keep: how many checkpoints stay. What is no checkpoint stays anyway.
        also_keep: steps whose checkpoints stay besides, such as the best.

    Returns:
        Its path.

    Raises:
        OSError: if it cannot be written, or is there: older ones stay as they are.
    """
    target, arrays, header = as_path(directory).absolute(), named_arrays(state), {"metadata": to_json(metadata)}
    alone = all(map(lies_here, arrays.values()))
    path = target / (file_name(step) if alone else folder_name(step))
    if path.exists():
        raise FileExistsError(f"{path} exists: delete it, or use another folder. Does another process train there?")
    try:
        target.mkdir(parents=True, exist_ok=True)
        if alone:
            write_bytes(path, to_bytes(state, header))
        else:
            save_folder(target, step, arrays, metadata)
    except OSError as error:
        raise OSError(
            f"Cannot save step {step} in {target}: {error}. Is the disk full, or the folder read-only? "
            f"Checkpoints that are there already stay: {list_checkpoints(target) or 'none'}."
        ) from error
    if alone or jax.process_index() == 0:
        _delete_older(target, max_to_keep, also_keep)
    return path


def _delete_older(directory: Path, max_to_keep: int, also_keep: Collection[int]) -> None:
    """Delete all checkpoints in a folder but those of the most steps and some others, whoever has written them."""
    for old in set(list_checkpoints(directory)[:-max_to_keep]) - set(also_keep):
        path = checkpoint_path(directory, old)
        if path.is_dir():
            delete_folder(path)
        else:
            path.unlink(missing_ok=True)


@checked
def list_checkpoints(directory: Location) -> list[int]:
    r"""Return the steps of the checkpoints in a folder, in order; of damaged ones, too; none if there is no folder.

    Those that several processes have saved together, which are folders themselves, are among them.
    """
    target = as_path(directory).absolute()
    if not target.is_dir():
        return []
    return sorted({int(path.stem) for path in target.iterdir() if is_checkpoint(path)} | {*list_folders(target)})


@checked
def load_checkpoint(directory: Location, like, *, step: Natural | None = None) -> tuple[Any, dict, int]:
    r"""Load the state of a training run, of one process or of several.

    Args:
        like: a tree of the same structure and shapes, whose numbers do not matter; what is no array is taken from it.
            What `fit` saves is like `(model, make_optimiser(config).init(model))`. Of a run with `trainable`, it saves
            what is trained; the rest is taken from `like`, too, and has to be as it was in the model that `fit` began
            with. What several processes have saved comes to lie where the arrays of `like` lie.
        step: which checkpoint; `None` for the newest.

    Returns:
        The state, the metadata and the step.

    Raises:
        FileNotFoundError: if there is none.
        DamagedCheckpoint: a `ValueError`, if it is damaged.
        ValueError: if it is of another model.
    """
    arrays, metadata, step = read_checkpoint(directory, step, named_arrays(like))
    arrays |= _not_trained(named_arrays(like), arrays, metadata)
    scales = {place.removeprefix("0."): scale for place, scale in scales_of(like).items()}
    if wrong := _misfit(arrays, named_arrays(like), metadata, scales):
        path, others = checkpoint_path(as_path(directory).absolute(), step), _others(directory, step)
        raise ValueError(
            f"The checkpoint {path} is of another model: {wrong}. Train into another directory, or make the model that "
            f"it was saved from. Other checkpoints there: {others or 'none'}."
        )
    return with_arrays(like, arrays), metadata, step


@checked
def load_best(directory: Location, model):
    r"""Return a model as `fit` had it when its validation loss was lowest, by the checkpoint of that step.

    Args:
        directory: that of the run.
        model: one like it, as `fit` began with; only what was not trained is taken from it.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ValueError: if the run was not evaluated, or is of another model.
    """
    target, like = as_path(directory).absolute(), {f"0.{name}": array for name, array in named_arrays(model).items()}
    metrics = read_checkpoint(target, None, like)[1].get("metrics", [])
    kept = list_checkpoints(target)
    losses = [(row["validation_loss"], row["step"]) for row in metrics if "validation_loss" in row]
    if not losses:
        raise ValueError(f"The run in {target} has no validation_loss; expected one: let fit have evaluate=….")
    step = min(losses)[1]
    if step not in kept:
        raise FileNotFoundError(f"The checkpoint of step {step} is not in {target} any more; found {kept}.")
    arrays, metadata, _ = read_checkpoint(target, step, like)
    arrays = {name: array for name, array in arrays.items() if name.startswith("0.")}
    arrays |= _not_trained(like, arrays, metadata)
    if wrong := _misfit(arrays, like, metadata, scales_of(model)):
        raise ValueError(f"The run in {target} is of another model: {wrong}. Make it as it was made for fit.")
    return with_arrays(model, {name.removeprefix("0."): array for name, array in arrays.items()})


def _misfit(arrays: dict, like: dict, metadata: dict, scales: dict) -> str:
    """In what a state of `fit` differs from the arrays of one like it and the scales of its adapters; "" if in none."""
    return differences(arrays, like) or ", ".join(other_scales(metadata, scales))


def _not_trained(like: dict, saved: dict, metadata: dict) -> dict:
    """Those arrays of a state of `fit` that are not saved, as the run does not train them; none if they differ.

    These are arrays of the model, of which the metadata have the digest, and what an optimiser remembers of them.
    """
    missing = {name: array for name, array in like.items() if name not in saved}
    frozen = {name.removeprefix("0."): array for name, array in missing.items() if name.startswith("0.")}
    remembered = [name for name in missing if not name.startswith("0.")]
    are_of_these = all(any(name.endswith(f".{place}") for place in frozen) for name in remembered)
    return missing if frozen and are_of_these and metadata.get("frozen") == digest(frozen) else {}


def read_checkpoint(directory: Location, step: int | None, like: dict) -> tuple[dict, dict, int]:
    """The arrays of a checkpoint by name, its metadata and its step; as for `load_checkpoint`, of whichever model.

    Those of several processes lie where those of the same names in `like` do.
    """
    target, steps = as_path(directory).absolute(), list_checkpoints(directory)
    which = "" if step is None else f" of step {step}"
    step = max(steps, default=None) if step is None else step
    if step not in steps:
        raise FileNotFoundError(f"There is no checkpoint{which} in {target}; found {steps or 'none'}.")
    path, others = checkpoint_path(target, step), _others(directory, step)
    try:
        if path.is_dir():
            return *read_folder(target, step, like), step
        arrays, header = read_arrays(path, "metadata")
        return arrays, parse_json(header["metadata"], "its metadata"), step
    except ValueError as error:
        advice = f"To go back to one, delete {path}." if others else "Start anew elsewhere."
        raise DamagedCheckpoint(
            f"The checkpoint {path} is damaged: {error}. Other checkpoints there: {others or 'none'}. {advice}"
        ) from error


def _others(directory: Location, step: int) -> list[int]:
    return [other for other in list_checkpoints(directory) if other != step]


def checkpoint_path(directory: Path, step: int) -> Path:
    """Where a checkpoint lies: a folder, if several processes have written it."""
    folder = directory / folder_name(step)
    return folder if folder.is_dir() else directory / file_name(step)


def file_name(step: int) -> str:
    """The name of a checkpoint, with zeros in front, so that a list by name is in order."""
    return f"{step:06d}.safetensors"


def is_checkpoint(path: Path) -> bool:
    """Whether a file is a checkpoint, or a damaged one, which loading shall name."""
    from safetensors import SafetensorError, safe_open

    if not (path.stem.isdecimal() and path.name == file_name(int(path.stem)) and path.is_file()):
        return False
    try:
        with safe_open(path, "numpy") as file:
            return "metadata" in (file.metadata() or {})
    except (SafetensorError, OSError):
        return True
