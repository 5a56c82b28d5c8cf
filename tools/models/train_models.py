"""Train the small models that later chapters and live figures use, and write what is made from them.

`make models` runs it: every `train_*.py` beside it writes models with their card into `models/`, then every
`*_figure.py` writes what a live figure shows of them into `widgets/`. Training is checkpointed under `build/models`, so
that a run that was stopped goes on.
"""

from importlib import import_module
from pathlib import Path

import checksums


def scripts(pattern: str) -> list:
    """The modules beside this one whose names fit a pattern."""
    here = Path(__file__)
    return [import_module(path.stem) for path in sorted(here.parent.glob(pattern)) if path.stem != here.stem]


if __name__ == "__main__":
    for script in scripts("train_*.py"):
        script.train()
    checksums.write()
    for script in scripts("*_figure.py"):
        script.write()
