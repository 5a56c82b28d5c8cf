"""The checkpoints that several processes write together, each its own part: folders, by orbax."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax

from plainformer.training.arrays import differences, to_json


def list_folders(directory: Path) -> list[int]:
    """The steps of the whole checkpoints of several processes in a folder, in order."""
    if not directory.is_dir():
        return []
    found = [int(path.name) for path in directory.iterdir() if path.name.isdecimal() and (path / COMMITTED).is_file()]
    return sorted(found)


# What orbax writes into a checkpoint when it is whole.
COMMITTED = "commit_success.txt"


def folder_name(step: int) -> str:
    """The name of a checkpoint that is a folder, with zeros in front, so that a list by name is in order."""
    return f"{step:06d}"


def delete_folder(path: Path) -> None:
    """Delete a checkpoint that is a folder; one that is deleted in part is no whole one any more."""
    (path / COMMITTED).unlink(missing_ok=True)
    shutil.rmtree(path)


def folder_manager(directory: Path, *, clean_up: bool = False):
    """What reads and writes the checkpoints of several processes; all of them have to make one, and to save by it.

    It may `clean_up` what processes have left behind that were killed while they saved.
    """
    import orbax.checkpoint as ocp

    options = ocp.CheckpointManagerOptions(
        cleanup_tmp_directories=clean_up,
        step_name_format=ocp.path.step.standard_name_format(step_format_fixed_length=6),
        enable_async_checkpointing=False,
    )
    handlers = {"state": ocp.StandardCheckpointHandler(), "metadata": ocp.JsonCheckpointHandler()}
    return ocp.CheckpointManager(directory, options=options, item_handlers=handlers)


def save_folder(manager, step: int, arrays: dict, metadata: dict) -> Path:
    """Save arrays by name, whole or not at all."""
    import orbax.checkpoint as ocp

    saved = ocp.args.Composite(
        state=ocp.args.StandardSave(arrays), metadata=ocp.args.JsonSave(json.loads(to_json(metadata)))
    )
    try:
        manager.save(step, args=saved, force=True)
    except (OSError, ValueError) as error:
        raise OSError(
            f"Cannot save step {step} in {manager.directory}: {error}. Is the disk full, or the folder read-only? "
            f"Checkpoints that are there already stay: {list_folders(Path(manager.directory)) or 'none'}."
        ) from error
    return Path(manager.directory) / folder_name(step)


def read_folder(directory: Path, step: int, like: dict) -> tuple[dict, dict]:
    """The arrays of a checkpoint, on the devices that those of the same names in `like` lie on, and its metadata.

    Those that `like` has not lie on one device. If it has others or other shapes, these are the shapes that were saved.
    What is damaged raises `ValueError`.
    """
    import orbax.checkpoint as ocp

    manager, here = folder_manager(directory), jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    try:
        metadata = manager.restore(step, args=ocp.args.Composite(metadata=ocp.args.JsonRestore()))["metadata"]
        arrays: dict[str, Any] = dict(manager.item_metadata(step)["state"])
        if not differences({name: array for name, array in arrays.items() if name in like}, like):
            wanted = {
                name: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=getattr(like.get(name), "sharding", here))
                for name, array in arrays.items()
            }
            state = ocp.args.StandardRestore(wanted)
            arrays = dict(manager.restore(step, args=ocp.args.Composite(state=state))["state"])
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    finally:
        manager.close()
    return arrays, metadata
