"""Saving a training run so that it can go on: all its numbers, written by orbax under another name and then renamed."""

import json
import os
import shutil
from pathlib import Path

from plainformer.checks import check_positive
from plainformer.training.trees import differences, digest, named_arrays, with_arrays

Directory = str | os.PathLike
DELETED = ".deleted-checkpoint"


def save_checkpoint(directory: Directory, step: int, state, notes: dict, *, keep: int = 3) -> Path:
    r"""Save a training state, whole or not at all, and delete all but the `keep` checkpoints of the most steps.

    **Arguments**

    - `directory`: where the checkpoints of this run lie, one folder each; made if missing.
    - `step`: how many steps the state has behind it; the folder's name.
    - `state`: any tree of arrays.
    - `notes`: what else to keep with it, such as configurations and losses; whatever JSON can hold.
    - `keep`: how many checkpoints stay, those of the most steps, be they older or newer files. What is no checkpoint,
      as `list_checkpoints` has it, stays anyway.

    **Returns** the folder of the new checkpoint.

    **Raises** `OSError` that names the folder if it cannot be written; older checkpoints stay as they are.
    `FileExistsError`, which is one, if there is a folder of this name; `TypeError` if JSON cannot hold the notes.
    """
    check_positive(keep=keep, **{"step + 1": step + 1})
    arrays, target = named_arrays(state), Path(directory).absolute()
    notes = json.loads(json.dumps(notes))
    notes["sha256"] = _seal(arrays, notes)
    folder = target / str(step)
    if folder.exists():
        kind = "checkpoint" if step in list_checkpoints(target) else "file or folder"
        raise FileExistsError(f"There is a {kind} {folder} already; delete it, or use another folder.")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for leftover in [*target.glob("*.orbax-checkpoint-tmp*"), *target.glob(f".*{DELETED}")]:
            shutil.rmtree(leftover)  # of a save or a deletion that was killed
        with _checkpointer() as checkpointer:
            import orbax.checkpoint as ocp

            items = ocp.args.Composite(state=ocp.args.StandardSave(arrays), notes=ocp.args.JsonSave(notes))
            checkpointer.save(folder, args=items)
    except Exception as error:  # orbax and tensorstore raise whatever they meet: OSError, ValueError, XlaRuntimeError
        raise OSError(
            f"Cannot save step {step} in {target}: {error}. Is the disk full, or the folder read-only? "
            f"Checkpoints that are there already stay: {list_checkpoints(target) or 'none'}."
        ) from error
    _prune(target, keep)
    return folder


def list_checkpoints(directory: Directory) -> list[int]:
    r"""Give the steps of the finished checkpoints in a folder, in order; an empty list if there is no folder.

    A checkpoint is a folder named by its step, with orbax's mark and with what `save_checkpoint` puts in.
    """
    target = Path(directory).absolute()
    if not target.is_dir():
        return []
    return sorted(int(entry.name) for entry in target.iterdir() if _is_checkpoint(entry))


def _is_checkpoint(folder: Path) -> bool:
    # One of each is enough: what lost the other is a damaged checkpoint, which loading shall name.
    marks, parts = ("commit_success.txt", "_CHECKPOINT_METADATA"), ("notes", "state")
    named_by_step = folder.name.isdecimal() and folder.name == str(int(folder.name))
    return named_by_step and all(any((folder / name).exists() for name in names) for names in (marks, parts))


def _prune(target: Path, keep: int) -> None:
    """Rename old checkpoints and then delete them, so that a kill never leaves half a one under its number."""
    for step in list_checkpoints(target)[:-keep]:
        hidden = target / f".{step}{DELETED}"
        os.rename(target / str(step), hidden)
        shutil.rmtree(hidden)


def load_checkpoint(directory: Directory, like, *, step: int | None = None):
    r"""Load a training state.

    **Arguments**

    - `directory`: as it was given to `save_checkpoint`.
    - `like`: a tree of the same structure and shapes, whose numbers do not matter; what is no array is taken from it.
      What `fit` saves is like `(model, new_optimiser(config).init(model))`.
    - `step`: which checkpoint; `None` for the newest.

    **Returns** the state, the notes and the step.

    **Raises** `FileNotFoundError` if there is none; `ValueError` if it was made by another model, or is damaged, with
    the steps of the others; `PermissionError` if it may not be read.
    """
    target, steps = Path(directory).absolute(), list_checkpoints(directory)
    if not steps or step not in (None, *steps):
        which = "no checkpoint" if step is None else f"no checkpoint {step}"
        raise FileNotFoundError(f"There is {which} in {target}; found {steps or 'none'}.")
    step = steps[-1] if step is None else step
    folder, others = target / str(step), [other for other in steps if other != step]
    there = f"Other checkpoints there: {others or 'none'}."
    advice = f"{there} " + (f"To go back to one, delete the folder {folder}." if others else "Start anew elsewhere.")
    expected = named_arrays(like)
    try:
        with _checkpointer() as checkpointer:
            import orbax.checkpoint as ocp

            notes = checkpointer.restore(folder, args=ocp.args.Composite(notes=ocp.args.JsonRestore())).notes
            found = checkpointer.metadata(folder).item_metadata.state
            wrong = differences(dict(found), expected)
            if not wrong:
                restore = ocp.args.Composite(state=ocp.args.StandardRestore(expected))
                arrays = checkpointer.restore(folder, args=restore).state
    except (PermissionError, MemoryError, ImportError):  # these say nothing about the checkpoint
        raise
    except Exception as error:
        raise ValueError(f"The checkpoint {folder} is damaged: {error}. {advice}") from error
    if wrong:
        raise ValueError(
            f"The checkpoint {folder} is of another model: {wrong}. "
            f"Train into another directory, or make the model that it was saved from. {there}"
        )
    if notes.pop("sha256", None) != _seal(arrays, notes):
        raise ValueError(f"The checkpoint {folder} is damaged: its numbers are not those saved. {advice}")
    return with_arrays(like, arrays), notes, step


def _seal(arrays: dict, notes: dict) -> str:
    return digest(arrays, json.dumps(notes, sort_keys=True))


def _checkpointer():
    # Imported here: it takes two seconds, and only those who save need it.
    import orbax.checkpoint as ocp

    handlers = {"state": ocp.StandardCheckpointHandler(), "notes": ocp.JsonCheckpointHandler()}
    return ocp.Checkpointer(ocp.CompositeCheckpointHandler(**handlers))
