"""Train the small models that later chapters and live figures use, and write what is made from them.

`make models` runs it: every `train_*.py` beside it writes models with their card into `models/`, two at a time, then
every `*_record.py` measures what they do, and every `*_figure.py` writes what a live figure shows of them into
`widgets/`. Training is checkpointed under `build/models`, so that a run that was stopped goes on.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import checksums


def scripts(pattern: str) -> list:
    """The modules beside this one whose names fit a pattern."""
    here = Path(__file__)
    return [import_module(path.stem) for path in sorted(here.parent.glob(pattern)) if path.stem != here.stem]


def train(name: str) -> None:
    """Run one script, in a process of its own."""
    import_module(name).train()


if __name__ == "__main__":
    names = [script.__name__ for script in scripts("train_*.py")]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(train, reversed(names)))  # one of the last takes longest
    for script in scripts("*_record.py"):
        script.write()
    checksums.write()
    for script in scripts("*_figure.py"):
        script.write()
