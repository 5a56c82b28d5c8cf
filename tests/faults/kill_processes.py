"""Trains a line in four processes, of which one is killed, three times, and then in two; prints as JSON: DIRECTORY.

Each kill is at another moment: in a step, while saving and at the start.
"""

import dataclasses
import json
import sys
import time
from pathlib import Path

import jax
from tiny_run import CONFIG, batch_at, run
from together import Together, say

from plainformer.training import checkpoint
from plainformer.training.checkpoint import list_checkpoints

LINE = dataclasses.replace(CONFIG, num_steps=20, checkpoint_every=4, max_to_keep=2)
BASE = Path(sys.argv[1])
SAVE = checkpoint.save_folder


def save_aloud(directory, step, *rest):
    """Save as ever, and say so before and after."""
    say("saving", step)
    SAVE(directory, step, *rest)
    say("saved", step)


def train(number: int) -> None:
    """Train, or go on, until all steps are done, and say what begins."""
    checkpoint.save_folder = save_aloud

    def batches(step):
        say("step", step)
        return batch_at(step)

    devices = jax.make_mesh((jax.device_count(),), ("data",))
    result = run(LINE, batches=batches, directory=BASE / "run", mesh=devices)
    (BASE / f"{number}.json").write_text(json.dumps([row["loss"] for row in result.metrics]))


def undisturbed(number: int) -> None:
    """The same in one process."""
    (BASE / "whole.json").write_text(json.dumps([row["loss"] for row in run(LINE).metrics]))


def killed(victim: int, words: str, wait: float = 0.0) -> dict:
    """Kill one of four processes so many seconds after it has said some words, and see what the others do."""
    before = list_checkpoints(BASE / "run")
    with Together(BASE / "logs", 4, train) as processes:
        processes.wait_for(words, victim)
        time.sleep(wait)
        processes.kill(victim)
        start = time.monotonic()
        statuses = processes.end(60)
        seconds = time.monotonic() - start
        said = [processes.said(number) for number in range(4)]
    return {
        "seconds": seconds,
        "before": before,
        "after": list_checkpoints(BASE / "run"),
        "statuses": statuses,
        "said": said,
    }


def main() -> None:
    """Three kills, then two processes that go on to the end, and one that is never disturbed."""
    BASE.mkdir(parents=True, exist_ok=True)
    kills = {
        "in a step": killed(2, "step 6"),
        "while saving": killed(0, "saving 8", 0.2),
        "at the start": killed(3, "connected"),
    }
    with Together(BASE / "logs", 2, train) as processes:
        statuses = processes.end()
        first = processes.said(0)
    with Together(BASE / "logs", 1, undisturbed) as processes:
        processes.end()
    print(json.dumps({"kills": kills, "statuses": statuses, "first": first}))


if __name__ == "__main__":
    main()
