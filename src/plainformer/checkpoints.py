"""Saving a training run so that it can go on: all its numbers, written by orbax under another name and then renamed."""

import json
import os
from pathlib import Path

from plainformer.errors import check_positive
from plainformer.trees import differences, digest, named_arrays, with_arrays

Directory = str | os.PathLike


def save_checkpoint(directory: Directory, step: int, state, notes: dict, *, keep: int = 3) -> Path:
    r"""Save a training state, whole or not at all, and delete all but the newest `keep`.

    **Arguments**

    - `directory`: where the checkpoints of this run lie, one folder each; made if missing.
    - `step`: how many steps the state has behind it; the folder's name.
    - `state`: any tree of arrays.
    - `notes`: what else to keep with it, such as configurations and losses; whatever JSON can hold.
    - `keep`: how many checkpoints stay.

    **Returns** the folder of the new checkpoint.

    **Raises** `OSError` that names the folder if it cannot be written; older checkpoints stay as they are.
    `FileExistsError`, which is one, if there is a checkpoint of this step; `TypeError` if JSON cannot hold the notes.
    """
    check_positive(keep=keep, **{"step + 1": step + 1})
    arrays, target = named_arrays(state), Path(directory).absolute()
    notes = json.loads(json.dumps(notes))
    notes["sha256"] = _seal(arrays, notes)
    if step in list_checkpoints(target):
        raise FileExistsError(f"There is a checkpoint {target / str(step)} already; delete it, or use another folder.")
    try:
        with _manager(target, create=True, max_to_keep=keep) as manager:
            import orbax.checkpoint as ocp

            arguments = ocp.args.Composite(state=ocp.args.StandardSave(arrays), notes=ocp.args.JsonSave(notes))
            manager.save(step, args=arguments, force=True)
    except Exception as error:  # orbax and tensorstore raise whatever they meet: OSError, ValueError, XlaRuntimeError
        raise OSError(
            f"Cannot save step {step} in {target}: {error}. Is the disk full, or the folder read-only? "
            f"Checkpoints that are there already stay: {list_checkpoints(target) or 'none'}."
        ) from error
    return target / str(step)


def list_checkpoints(directory: Directory) -> list[int]:
    r"""Give the steps of the finished checkpoints in a folder, oldest first; an empty list if there is no folder."""
    target = Path(directory).absolute()
    if not target.is_dir():
        return []
    return sorted(int(entry.name) for entry in target.iterdir() if entry.name.isdecimal() and entry.is_dir())


def load_checkpoint(directory: Directory, like, *, step: int | None = None):
    r"""Load a training state.

    **Arguments**

    - `directory`: as it was given to `save_checkpoint`.
    - `like`: a tree of the same structure and shapes, whose numbers do not matter; what is no array is taken from it.
    - `step`: which checkpoint; `None` for the newest.

    **Returns** the state, the notes and the step.

    **Raises** `FileNotFoundError` if there is none; `ValueError` if it was made by another model, or is damaged, with
    the steps of the others.
    """
    target, steps = Path(directory).absolute(), list_checkpoints(directory)
    if not steps or step not in (None, *steps):
        which = "no checkpoint" if step is None else f"no checkpoint {step}"
        raise FileNotFoundError(f"There is {which} in {target}; found {steps or 'none'}.")
    step = steps[-1] if step is None else step
    others = [other for other in steps if other != step]
    hint = f"Other checkpoints there: {others or 'none'}. To go back to one, delete the folder {target / str(step)}."
    wanted = named_arrays(like)
    try:
        with _manager(target, create=False) as manager:
            import orbax.checkpoint as ocp

            notes = manager.restore(step, args=ocp.args.Composite(notes=ocp.args.JsonRestore())).notes
            found = manager.item_metadata(step).state
            wrong = differences(dict(found), wanted)
            if not wrong:
                restore = ocp.args.Composite(state=ocp.args.StandardRestore(wanted))
                arrays = manager.restore(step, args=restore).state
    except Exception as error:
        raise ValueError(f"The checkpoint {target / str(step)} is damaged: {error}. {hint}") from error
    if wrong:
        raise ValueError(f"The checkpoint {target / str(step)} is of another model: {wrong}. {hint}")
    if notes.pop("sha256", None) != _seal(arrays, notes):
        raise ValueError(f"The checkpoint {target / str(step)} is damaged: its numbers are not those saved. {hint}")
    return with_arrays(like, arrays), notes, step


def _seal(arrays: dict, notes: dict) -> str:
    return digest(arrays, json.dumps(notes, sort_keys=True))


def _manager(target: Path, *, create: bool, max_to_keep: int | None = None):
    # Imported here: it takes two seconds, and only those who save need it.
    import orbax.checkpoint as ocp

    options = ocp.CheckpointManagerOptions(
        create=create, max_to_keep=max_to_keep, enable_async_checkpointing=False, cleanup_tmp_directories=create
    )
    handlers = {"state": ocp.StandardCheckpointHandler(), "notes": ocp.JsonCheckpointHandler()}
    return ocp.CheckpointManager(target, options=options, item_handlers=handlers)
