"""A power cut at any moment of a save costs at most the newest step, and training goes on by itself.

The disk is simulated: what was flushed is kept, as long as the names of its folder were; of all else the worst is
assumed, in two ways: files are as they were when last flushed, and renamings and deletions that were not flushed have
either all been done or all been lost.
"""

import dataclasses
import os
import shutil
import warnings
from pathlib import Path

from tiny_run import CONFIG, numbers_of, run

from plainformer.training.checkpoint import list_checkpoints


class Disk:
    """Notes, at each flushing, renaming and deletion in a folder, what a power cut just then would leave of it."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder = folder
        self.flushed: dict[int, bytes] = {}  # by the number of the file
        self.names: dict[str, int] = {}  # those that the flushed folder has
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

    def _now(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in self.folder.iterdir()}

    def _flush(self, number: int) -> None:
        if number == self.folder.stat().st_ino:
            self.names = self._now()
        else:
            (path,) = (self.folder / name for name, each in self._now().items() if each == number)
            self.flushed[number] = path.read_bytes()

    def _note(self) -> None:
        for names in (self.names, self._now()):
            left = {name: self.flushed.get(number, b"") for name, number in names.items()}
            if not self.cuts or left != self.cuts[-1]:
                self.cuts.append(left)


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
        after = tmp_path / str(number)
        after.mkdir()
        for name, content in files.items():
            (after / name).write_bytes(content)
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
