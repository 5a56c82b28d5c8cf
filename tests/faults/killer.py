"""Trains a line in processes that are killed at random moments, until so many were; none may lose what it had saved.

python killer.py DIRECTORY NUM_KILLS; it prints how many were killed while they started, in a step and while saving. One
process that has imported everything is forked for each: it starts no thread before, as it computes nothing itself.
"""

import dataclasses
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import optax  # noqa: F401 (fit would import it in every process)
from safetensors import safe_open
from tiny_run import CONFIG, batch_at, run
from trainer import saving_aloud, say

from plainformer.training.checkpoint import list_checkpoints

LINE = dataclasses.replace(CONFIG, num_steps=80, checkpoint_every=2)
RUN = sys.modules["plainformer.training.run"]


def train(directory: Path) -> None:
    """Train, or go on, until all steps are done, and say what begins."""
    RUN.save_checkpoint = saving_aloud(RUN.save_checkpoint)

    def batches(step):
        say("step", step)
        time.sleep(0.002)
        return batch_at(step)

    run(LINE, batches=batches, directory=directory)


def started(directory: Path):
    """The number of a process that trains, and what it says."""
    hears, says = os.pipe()
    process = os.fork()
    if not process:
        status = 1
        try:
            os.dup2(says, sys.stdout.fileno())
            train(directory)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(says)
    return process, os.fdopen(hears)


def killed(directory: Path, moments: random.Random) -> str:
    """Where a process was when it was killed, or `finished` if it was faster."""
    process, lines = started(directory)
    with lines:
        heard = []
        if moments.random() < 0.2:  # at any moment, be it while it starts or reads its checkpoint
            time.sleep(2 * moments.random())
        else:
            word, left = moments.choice(["step", "saving"]), moments.randint(1, 3)
            while left and (line := lines.readline()):
                heard.append(line)
                left -= line.startswith(word)
            time.sleep({"step": 0.01, "saving": 0.004}[word] * moments.random())
        os.kill(process, signal.SIGKILL)
        heard += lines.readlines()
    status = os.waitpid(process, 0)[1]
    assert status in (0, signal.SIGKILL), "the process failed by itself"
    if status == 0:
        return "finished"
    last = heard[-1].split()[0] if heard else "starting"
    return {"saving": "while saving", "starting": "while starting"}.get(last, "in a step")


def finished(directory: Path) -> dict:
    """What is in the folder when nobody disturbs the training any more; of a checkpoint, its header with its seal."""
    process, lines = started(directory)
    with lines:
        lines.read()
    assert os.waitpid(process, 0)[1] == 0
    files = [path for path in directory.iterdir() if not path.name.startswith(".plainformer-")]
    return {path.name: path.read_text() if path.suffix == ".csv" else header(path) for path in files}


def header(path: Path) -> dict[str, str]:
    """What a checkpoint says beside its arrays: all metrics, and a checksum of metrics and arrays."""
    with safe_open(path, "numpy") as file:
        return file.metadata()


def main(folder: str, num_kills: int) -> None:
    """Kill one run after the other, up to 20 times each, and hold its end against that of one left in peace."""
    moments, places = random.Random(20170612), Counter[str]()
    whole = finished(Path(folder) / "whole")
    assert sorted(whole) == ["000078.safetensors", "000080.safetensors", "metrics.csv"]
    number = 0
    while places.total() < num_kills:
        number += 1
        directory = Path(folder) / str(number)
        for _ in range(min(20, num_kills - places.total())):
            before = list_checkpoints(directory)
            place = killed(directory, moments)
            assert list_checkpoints(directory)[-1:] >= before[-1:], f"{place}, a checkpoint was lost"
            if place == "finished":
                break
            places[place] += 1
        assert finished(directory) == whole, "another end"
        say(f"run {number}:", *(f"{count} {place}," for place, count in sorted(places.items())), "none lost")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
