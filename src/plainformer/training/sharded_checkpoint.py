"""The checkpoints that several processes write together, each its own part: folders, by orbax."""

import hashlib
import json
import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import jax

from plainformer.data.files import PARTIAL, read_json, sync_folder, write_text
from plainformer.training.arrays import differences, to_json
from plainformer.training.notices import warn


def list_folders(directory: Path) -> list[int]:
    """The steps of the whole checkpoints of several processes in a folder, in order."""
    if not directory.is_dir():
        return []
    found = [int(path.name) for path in directory.iterdir() if path.name.isdecimal() and (path / SEAL).is_file()]
    return sorted(found)


# The checksums of a checkpoint's files. It is written last: a folder without it is no whole checkpoint.
SEAL = "plainformer.json"
COMMITTED = "_CHECKPOINT_METADATA"  # what orbax's own checkpoints have; other folders are the reader's


def _checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a checkpoint, by its place in it."""
    found = {}
    for path in sorted(set(folder.rglob("*")) - {folder / SEAL}):
        if path.is_file():
            with path.open("rb") as file:
                found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _seal(folder: Path) -> None:
    """Let a checkpoint outlast a power cut: flush all its files and folders, and then seal it by their checksums.

    Orbax (0.12) flushes neither, so that its newest checkpoint could be there in name alone, with older ones deleted.
    """
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir():
            sync_folder(path)
        else:
            with path.open("r+b") as file:
                os.fsync(file.fileno())
    write_text(folder / SEAL, json.dumps(_checksums(folder)))
    sync_folder(folder.parent)


def _check_seal(folder: Path) -> None:
    """Raise `ValueError` unless the files of a checkpoint are as they were when it was sealed."""
    sealed, found = read_json(folder / SEAL), _checksums(folder)
    if wrong := [name for name in sorted(sealed.keys() | found.keys()) if sealed.get(name) != found.get(name)]:
        raise ValueError(f"its files {wrong[:5]}{' and more' * (len(wrong) > 5)} are not as they were saved")


def folder_name(step: int) -> str:
    """The name of a checkpoint that is a folder, with zeros in front, so that a list by name is in order."""
    return f"{step:06d}"


def delete_folder(path: Path) -> None:
    """Delete a checkpoint that is a folder; one that is deleted in part is no whole one any more."""
    (path / SEAL).unlink(missing_ok=True)
    shutil.rmtree(path)


def put_unsealed_aside(directory: Path) -> None:
    """Hide what orbax had saved when a process was killed before the seal: in its place orbax would save nothing."""
    for path in directory.glob("[0-9]" * len(folder_name(0))):
        if (path / COMMITTED).is_file() and not (path / SEAL).is_file():
            aside = path.with_name(f"{PARTIAL}unsealed-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.replace(aside)
            warn(f"{path} was not saved to its end, and has no {SEAL}: it is now {aside.name}.")


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


def save_folder(directory: Path, step: int, arrays: dict, metadata: dict) -> None:
    """Save arrays by name, whole or not at all; all processes have to, and the first seals what they have written."""
    import orbax.checkpoint as ocp

    state, known = ocp.args.StandardSave(arrays), ocp.args.JsonSave(json.loads(to_json(metadata)))
    try:
        manager = folder_manager(directory, clean_up=True)
        manager.save(step, args=ocp.args.Composite(state=state, metadata=known), force=True)
    except ValueError as error:  # what orbax makes of some errors of the system
        raise OSError(str(error)) from error
    if jax.process_index() == 0:
        _seal(directory / folder_name(step))
    manager.close()  # not after an error, which the other processes may not have


def read_folder(directory: Path, step: int, like: dict) -> tuple[dict, dict]:
    """The arrays of a checkpoint, on the devices that those of the same names in `like` lie on, and its metadata.

    Those that `like` has not lie on one device. If it has others or other shapes, these are the shapes that were saved.
    What is damaged raises `ValueError`.
    """
    import orbax.checkpoint as ocp

    here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    try:
        _check_seal(directory / folder_name(step))
        with closing(folder_manager(directory)) as manager:
            metadata = manager.restore(step, args=ocp.args.Composite(metadata=ocp.args.JsonRestore()))["metadata"]
            arrays: dict[str, Any] = dict(manager.item_metadata(step)["state"])
            if not differences({name: array for name, array in arrays.items() if name in like}, like):
                wanted = {
                    name: jax.ShapeDtypeStruct(
                        array.shape, array.dtype, sharding=getattr(like.get(name), "sharding", here)
                    )
                    for name, array in arrays.items()
                }
                state = ocp.args.StandardRestore(wanted)
                arrays = dict(manager.restore(step, args=ocp.args.Composite(state=state))["state"])
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    return arrays, metadata
