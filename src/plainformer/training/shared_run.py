"""A training run of several processes: all compute and save, and the first one writes metrics (chapter scaling)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import jax
from jax.sharding import Mesh

from plainformer.training.arrays import Location
from plainformer.training.processes import Companions, gathered, spans_processes
from plainformer.training.run import Run
from plainformer.training.sharded_checkpoint import put_unsealed_aside


def run_on(mesh: Mesh | None, directory: Location | None, identity: dict) -> Run:
    """The training run on a mesh: that of one process or of several."""
    return (SharedRun if spans_processes(mesh) else Run)(directory, identity)


class SharedRun(Run):
    """A `Run` of several processes, each of which goes through the same steps with one of its own."""

    def __init__(self, directory: Location | None, identity: dict):
        super().__init__(directory, identity)
        self._stop, self._asked_at = 0, -1
        self.speaks = jax.process_index() == 0
        if not self.speaks:
            self._table = SimpleNamespace(write=lambda metrics: None)

    def __enter__(self) -> "SharedRun":
        if self.directory is not None:
            cannot = self._try_to_write(lambda: self.directory.mkdir(parents=True, exist_ok=True))
            failed = [number for number, fails in enumerate(gathered(cannot is not None)) if fails]
            if failed:
                raise OSError(
                    f"Processes {failed} cannot make the folder {self.directory}{f': {cannot}' if cannot else ''}. "
                    "Is a file in the way, the disk full, or the folder above it read-only?"
                ) from cannot
            self._companions = self._held.enter_context(Companions(self.directory))
        return self

    def _take_lock(self) -> None:
        if self.speaks:
            super()._take_lock()
            self._companions.remove_old_files()
            put_unsealed_aside(self.directory)

    def _put_aside(self, damaged: list[Path], newest: Path) -> None:
        gathered(0)  # all have read them
        if self.speaks:
            super()._put_aside(damaged, newest)

    @contextmanager
    def saving_at_an_error(self, state, max_to_keep: int) -> Iterator[None]:
        """Save nothing: the error may be of this process alone, and all have to save together."""
        yield

    def agreed(self, stop: int) -> int:
        """Whether any process would stop: all have to after the same step, and ask each other once in it."""
        if self._asked_at != len(self.metrics):
            self._stop, self._asked_at = max(gathered(stop)), len(self.metrics)
        return self._stop
