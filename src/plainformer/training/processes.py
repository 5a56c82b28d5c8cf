"""Several processes that train together: what each has found out, and what they do when one of them has gone."""

import os
import secrets
import sys
import threading
import time
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh

from plainformer.data.files import PARTIAL
from plainformer.training.arrays import digest, named_arrays, to_json
from plainformer.training.notices import warn

SUFFIX = ".process"  # how the names of the files end that processes hold locks on


def spans_processes(mesh: Mesh | None) -> bool:
    """Whether a mesh has devices of several processes."""
    return mesh is not None and len({device.process_index for device in mesh.devices.flat}) > 1


def gathered(number) -> list:
    """What each process has for a number, in the order of the processes; each has to ask, and all wait for the last."""
    from jax.experimental.multihost_utils import process_allgather

    return process_allgather(np.asarray(number)).tolist()


def check_same_start(mesh: Mesh | None, model, config) -> None:
    """Raise `ValueError` unless all processes of a mesh begin with the same model and configuration."""
    if not spans_processes(mesh):
        return
    here = {name: array for name, array in named_arrays(model).items() if getattr(array, "is_fully_addressable", True)}
    number = zlib.crc32(f"{digest(here)} {to_json(config)}".encode())
    if len(set(gathered(number % 2**31))) > 1:
        raise ValueError(
            "The processes begin with different models or configurations; expected the same in each, drawn by the same "
            "random key. Only the rows of batches are a process's own."
        )


class Companions:
    """The other processes of a run, watched from here, in a `with` statement: when one is killed, this one ends, too.

    It could not go on: it would wait for what the other was to send. Each process holds a lock on a file of its own in
    the run's folder. The system lets go of the lock when a process ends, however it ends, and in the others a thread
    for each waits for that.
    """

    patience = 20.0  # seconds for a process to end by an error of its own, when another has ended by one

    def __init__(self, directory: Path):
        self.directory = directory
        self.number, self.count = jax.process_index(), jax.process_count()
        self._over = threading.Event()
        self._speaking = threading.Lock()
        self._resources = ExitStack()

    def __enter__(self) -> "Companions":
        import portalocker

        token = gathered(secrets.randbits(31))[0]  # no file of another run shall be taken for one of these
        self.paths = [self.directory / f"{PARTIAL}{token:08x}-{number}{SUFFIX}" for number in range(self.count)]
        own = self._resources.enter_context(self.paths[self.number].open("w"))
        try:
            portalocker.lock(own, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            locked = True
        except portalocker.LockException as error:
            warn(f"The file system of {self.directory} has no locks: {error}. A process that is killed is not named.")
            locked = False
        if not all(gathered(locked)):  # and by now all files are there
            return self
        self._check_all_see()
        for number in range(self.count):
            if number != self.number:
                threading.Thread(target=self._wait_for, args=(number,), daemon=True).start()
        gathered(0)  # and all are watched
        return self

    def _check_all_see(self) -> None:
        blind = [number for number, sees in enumerate(gathered(all(map(Path.exists, self.paths)))) if not sees]
        if blind:
            self.paths[self.number].unlink()
            self._resources.close()
            raise ValueError(
                f"Of {self.count} processes, {', '.join(map(str, blind))} do not see the files of all others in "
                f"{self.directory}; expected one folder that all share, such as on a network file system."
            )

    def __exit__(self, kind, *_) -> None:
        if kind is None:
            gathered(0)  # none goes before all have done what they had to do
        else:
            time.sleep(1)  # if the error is that another does not answer, a thread is about to say so and end this one
        with self._speaking:
            self._over.set()
            self._leave()
        self._resources.close()

    def remove_old_files(self) -> None:
        """Take away what killed processes have left in the folder, where no other run is any more."""
        for path in set(self.directory.glob(f"{PARTIAL}*{SUFFIX}")) - set(self.paths):
            path.unlink(missing_ok=True)

    def _leave(self) -> None:
        """Let the others know that this process goes by itself, by taking away its file before the lock."""
        with suppress(OSError):
            self.paths[self.number].unlink()

    def _wait_for(self, number: int) -> None:
        """Wait until a process has gone; and unless this one ends by itself, too, say which, and end it."""
        import portalocker

        with suppress(FileNotFoundError), self.paths[number].open("r") as file:
            portalocker.lock(file, portalocker.LockFlags.SHARED)
        killed = self.paths[number].exists()
        self._over.wait(0 if killed else self.patience)
        with self._speaking:  # from here on for ever, unless all is over: only the first that has gone is named
            if self._over.is_set():
                return
            how = "was killed, or its machine has gone" if killed else "has ended by an error, which it has printed"
            sys.stderr.write(
                f"\nProcess {number} of {self.count} {how}: process {self.number} stops, too, as it cannot go on alone."
                f" Start all again with the same directory, {self.directory}, on any number of processes whose devices"
                " share the batch equally: training goes on from its newest checkpoint.\n"
            )
            sys.stderr.flush()
            self._leave()
            if self.number == 0:
                time.sleep(0.5)  # the others may still have to say so, and JAX ends them all with process 0
            os._exit(1)  # what the main thread waits for never comes, and JAX would wait for the others at its end
