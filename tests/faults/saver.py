"""Saves a checkpoint in one process after the other, each killed before another of its file operations.

python saver.py DIRECTORY; it prints one line per process: what checkpoints are there after it, and which one loads.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy as np

from plainformer.training.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint

CHANGES = {"os.rename", "os.remove", "os.chmod", "os.mkdir", "os.link", "os.truncate"}


def state(step: int):
    """A state to be told from others."""
    return {"weight": np.full(1000, step, np.float32)}


def kill_before(number: int) -> None:
    """Let this process end before it changes a file for the so-many-th time."""
    count = 0

    def hook(event, arguments):
        nonlocal count
        count += event in CHANGES or (event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR)))
        if count == number:
            os._exit(1)  # as suddenly as SIGKILL: nothing is tidied up

    sys.addaudithook(hook)


def main(folder: str) -> None:
    """Go on until a process ends by itself."""
    number, status = 0, 1
    while status:
        number += 1
        directory = Path(folder) / str(number)
        for step in (1, 2):
            save_checkpoint(directory, step, state(step), {})
        process = os.fork()
        if not process:
            kill_before(number)
            save_checkpoint(directory, 3, state(3), {}, max_to_keep=2)
            os._exit(0)
        status = os.waitpid(process, 0)[1]
        found, _, step = load_checkpoint(directory, state(0))
        assert (np.asarray(found["weight"]) == step).all()
        print(*list_checkpoints(directory), flush=True)
        # What comes later is not hindered by what the killed process has left.
        save_checkpoint(directory, 4, state(4), {}, max_to_keep=2)
        assert list_checkpoints(directory)[-1] == 4
        shutil.rmtree(directory)


if __name__ == "__main__":
    main(sys.argv[1])
