"""Train the small models that chapters and live figures use, measure them, and write what is made from them.

`make models` runs it: every `lab/<name>/run.py` that trains, two at a time, then every one that measures what others
have trained, then every script in `lab/figures`, which writes what a live figure shows of them into `widgets/`. `make
models ONLY=positions` runs only those whose names contain that word. Training is checkpointed under
`build/models`, so that a run that was stopped goes on; what is finished there is not trained again.

    python -m lab.run staircase --facts      says its record anew, in card and facts, without training
"""

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType

from lab.records import LAB, write_index, write_record

MINUTES = Path(__file__).with_name("minutes.json")  # what each training took when it was last done from the start


def runs(only: str = "") -> dict[str, ModuleType]:
    """The recorded runs whose names contain a word: some `train`, and the others `write` what they measure."""
    names = [path.parent.name for path in sorted(LAB.glob("*/run.py"))]
    return {name: import_module(f"lab.{name}.run") for name in names if only in name}


def figures(only: str = "") -> list[ModuleType]:
    """The scripts that write what live figures show."""
    names = [path.stem for path in sorted(LAB.glob("figures/*.py")) if not path.stem.startswith("test_")]
    return [import_module(f"lab.figures.{name}") for name in names if only in name]


def train(name: str) -> float:
    """Train one, in a process of its own; return the minutes that it took."""
    begin = time.monotonic()
    import_module(f"lab.{name}.run").train()
    return round((time.monotonic() - begin) / 60, 1)


def plan(names: list[str], minutes: dict[str, float]) -> str:
    """What will be trained, and how long that took on two processors."""
    lines = [f"  {name}: {f'{minutes[name]:g} min' if name in minutes else 'not timed yet'}" for name in names]
    known = sum(minutes.get(name, 0) for name in names)
    return "\n".join([f"To train, two at a time, {known / 120:.1f} h or more from the start:", *lines])


def say_again(only: str) -> None:
    """Write facts and cards of records anew, from the numbers that stand in them."""
    for name, run in runs(only).items():
        if hasattr(run, "facts"):
            found = json.loads((LAB / name / "record.json").read_text(encoding="utf-8"))
            found.pop("facts", None)
            write_record(name, found, run.card(found), run.facts(found))
    write_index()


def make(only: str) -> None:
    """Train, measure, and write what figures show."""
    chosen = runs(only)
    names = [name for name, run in chosen.items() if hasattr(run, "train")][::-1]  # one of the last takes longest
    minutes = json.loads(MINUTES.read_text(encoding="utf-8"))
    print(plan(names, minutes), flush=True)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for name, taken in zip(names, pool.map(train, names), strict=True):
            print(f"{name}: done in {taken:g} min", flush=True)
            minutes[name] = max(taken, minutes.get(name, 0))
            MINUTES.write_text(json.dumps(dict(sorted(minutes.items())), indent=2) + "\n", encoding="utf-8")
    write_index()  # what measures the models asks for them by their checksums
    for run in chosen.values():
        if not hasattr(run, "train"):
            run.write()
    write_index()
    for figure in figures(only):
        figure.write()


if __name__ == "__main__":
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    if not runs(only) and not figures(only):
        sys.exit(f"No run's name contains {only!r}; expected a word such as positions.")
    if "--facts" in sys.argv:
        say_again(only)
    else:
        make(only)
