"""A power cut at any moment of a save costs at most the newest step, and training goes on by itself.

The disk is simulated: what was flushed is kept, as long as the names of its folder were; of all else the worst is
assumed, in two ways: files are as they were when last flushed, and renamings and deletions that were not flushed have
either all been done or all been lost.
"""

import dataclasses
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from tiny_run import CONFIG, Line, numbers_of, run

from plainformer.training.arrays import named_arrays
from plainformer.training.checkpoint import _delete_older, list_checkpoints
from plainformer.training.sharded_checkpoint import SEAL, list_folders, read_folder, save_folder


class Disk:
    """Notes, at each flushing, renaming and deletion in a folder, what a power cut just then would leave of it."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder = folder
        self.flushed: dict[int, bytes] = {}  # by the number of the file
        self.names: dict[int, dict[str, int]] = {}  # by the number of a folder, those that it had when it was flushed
        self.folders: set[int] = set()
        self.held: dict[int, int] = {}  # what is open keeps its number, which no other file gets when it is deleted
        self.cuts: list[dict[str, bytes]] = []
        for name in ("fsync", "replace", "unlink", "rename"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, act):
        def watched(first, *rest, **options):
            self._note()
            found = act(first, *rest, **options)
            if act.__name__ == "fsync":
                self._flush(os.fstat(first).st_ino)
            self._note()
            return found

        return watched

    def _now(self) -> dict[int, dict[str, int]]:
        folders = [self.folder, *(path for path in self.folder.rglob("*") if path.is_dir())]
        for path in self.folder.rglob("*"):
            if path.stat().st_ino not in self.held:
                self.held[path.stat().st_ino] = os.open(path, os.O_RDONLY)
        return {path.stat().st_ino: {each.name: each.stat().st_ino for each in path.iterdir()} for path in folders}

    def close(self) -> None:
        for number in self.held.values():
            os.close(number)

    def _flush(self, number: int) -> None:
        if number in (now := self._now()):
            self.names[number] = now[number]
        else:
            (path,) = (path for path in self.folder.rglob("*") if path.stat().st_ino == number)
            self.flushed[number] = path.read_bytes()

    def _note(self) -> None:
        self.folders |= (now := self._now()).keys()
        for names in (self.names, now):
            left = dict(self._files(names, self.folder.stat().st_ino))
            if not self.cuts or left != self.cuts[-1]:
                self.cuts.append(left)

    def _files(self, names: dict[int, dict[str, int]], folder: int, above: str = "") -> Iterator[tuple[str, bytes]]:
        for name, number in names.get(folder, {}).items():
            if number in self.folders:
                yield from self._files(names, number, f"{above}{name}/")
            else:
                yield f"{above}{name}", self.flushed.get(number, b"")


def written(files: dict[str, bytes], folder: Path) -> Path:
    """A folder with these files in it."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_power_cut_costs_at_most_the_newest_step(tmp_path, monkeypatch):
    config = dataclasses.replace(CONFIG, checkpoint_every=2, max_to_keep=1)
    whole = run(config)
    folder = tmp_path / "run"
    folder.mkdir()
    with monkeypatch.context() as patch:
        disk = Disk(folder, patch)
        run(config, directory=folder)
    assert len(disk.cuts) >= 20
    newest = 0
    for number, files in enumerate(disk.cuts):
        after = written(files, tmp_path / str(number))
        good = [step for step in list_checkpoints(after) if files[f"{step:06d}.safetensors"]]
        newest = max(newest, *good, 0)
        assert max(good, default=0) >= newest - config.checkpoint_every, f"after {number} writings"
        if number % 5 == 0 or number == len(disk.cuts) - 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that the newest is damaged
                found = run(config, directory=after)
            assert found.metrics == whole.metrics
            assert numbers_of(found.model) == numbers_of(whole.model)
        shutil.rmtree(after)
    assert newest == config.num_steps
    disk.close()


def whole_folders(directory: Path) -> list[int]:
    """The steps whose folders are read as they were saved."""
    found = []
    for step in list_folders(directory):
        with suppress(ValueError):
            arrays, metadata = read_folder(directory, step, named_arrays(Line()))
            assert (float(arrays["bias"][0]), metadata) == (step, {"step": step})
            found.append(step)
    return found


def test_a_power_cut_costs_at_most_the_newest_of_what_several_processes_save(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    with monkeypatch.context() as patch:
        disk = Disk(folder, patch)
        for step in (1, 2, 3):
            arrays = {name: np.full_like(array, step) for name, array in named_arrays(Line()).items()}
            save_folder(folder, step, arrays, {"step": step})
            _delete_older(folder, 1, ())
    newest, known = 0, {}  # reading takes a while: what leaves the same of sealed folders is read once
    for number, files in enumerate(disk.cuts):
        sealed = {name.removesuffix(f"/{SEAL}") for name in files if name.endswith(SEAL)}
        left = frozenset((name, content) for name, content in files.items() if name.partition("/")[0] in sealed)
        if left not in known:
            known[left] = whole_folders(written(files, tmp_path / str(number)))
        newest = max([newest, *known[left]])
        assert max(known[left], default=0) >= newest - 1, f"after {number} writings"
    assert newest == 3
    disk.close()
