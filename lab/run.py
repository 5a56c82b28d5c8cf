"""Train the small models that chapters and live figures use, measure them, and write what is made from them.

`make models` runs it: every `lab/<name>/run.py`, two at a time, each after those that its `NEEDS` name, then every
script in `lab/figures`, which writes what a live figure shows of them into `widgets/`. `make models ONLY=positions`
makes only that of this name, or else those whose names contain the word. What `results()` of a run returns goes into
its record, with what its `facts` say of that; `lab/cards.py` says its card. Training is checkpointed under
`build/models`, so that a run that was stopped goes on; what is finished there is not trained again.

    python -m lab.run staircase --facts      says its facts anew, without training
"""

import argparse
import json
import multiprocessing
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from lab.records import LAB, measured, write_index, write_record


def runs(only: str = "") -> dict[str, ModuleType]:
    """The recorded run of this name, or else those whose names contain it as a word."""
    names = [path.parent.name for path in sorted(LAB.glob("*/run.py"))]
    names = [only] if only in names else [name for name in names if only in name]
    return {name: import_module(f"lab.{name}.run") for name in names}


def figures(only: str = "") -> list[ModuleType]:
    """The scripts that write what live figures show."""
    names = [path.stem for path in sorted(LAB.glob("figures/*.py")) if not path.stem.startswith("test_")]
    return [import_module(f"lab.figures.{name}") for name in names if only in name]


def recorded(names: Iterable[str]) -> dict[str, dict]:
    """The records of those runs that have one."""
    files: dict[str, Path] = {name: LAB / name / "record.json" for name in names}
    return {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}


def minutes(names: Iterable[str]) -> dict[str, float]:
    """What each run took when it was last made from the start, as far as its record says so."""
    return {name: each["made"]["minutes"] for name, each in recorded(names).items() if "made" in each}


def record(name: str) -> float:
    """Make one, in a process of its own, and write its record; return the minutes that it took."""
    run, begin = import_module(f"lab.{name}.run"), time.monotonic()
    found = run.results()
    taken = round((time.monotonic() - begin) / 60, 1)
    versions = {"python": platform.python_version()} | {each: version(each) for each in ("jax", "equinox", "optax")}
    if found:  # without its texts a run finds nothing, and its record stays
        from_the_start = max(taken, minutes([name]).get(name, 0))  # what was trained before is only read
        write_record(name, found, run, {"minutes": from_the_start, "versions": versions})
    return taken


def plan(names: list[str], minutes: dict[str, float]) -> str:
    """What will be made, and how long that took on two processors."""
    lines = [f"  {name}: {f'{minutes[name]:g} min' if name in minutes else 'not timed yet'}" for name in names]
    known = sum(minutes.get(name, 0) for name in names)
    return "\n".join([f"To make, two at a time, {known / 120:.1f} h or more from the start:", *lines])


def in_order(needs: dict[str, tuple[str, ...]], pool: Executor, work: Callable[[str], Any]) -> Iterator[tuple]:
    """Work on each as soon as all that it needs are done; give each with what came of it, as it ends.

    A need that is not there counts as done. One that is given counts as done when the next is asked for.
    """
    order = TopologicalSorter({name: [each for each in of if each in needs] for name, of in needs.items()})
    order.prepare()
    running: dict[Future, str] = {}
    try:
        while order.is_active():
            running |= {pool.submit(work, name): name for name in order.get_ready()}
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                yield name, future.result()
                order.done(name)
    finally:
        for future in running:
            future.cancel()


def say_again(only: str) -> None:
    """Write the facts of records anew, from the numbers that stand in them."""
    chosen = runs(only)
    for name, found in recorded(chosen).items():
        write_record(name, measured(found), chosen[name])
    write_index()


def make(only: str) -> None:
    """Train, measure, and write what figures show."""
    chosen = runs(only)
    known = minutes(chosen)
    names = sorted(chosen, key=lambda name: -known.get(name, 0))  # the longest first
    print(plan(names, known), flush=True)
    needs = {name: getattr(chosen[name], "NEEDS", ()) for name in names}
    # A new process for each, which reads the index as it is by then.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        for name, taken in in_order(needs, pool, record):
            print(f"{name}: done in {taken:g} min", flush=True)
            write_index()  # before those begin that ask for what it made by checksum
    for figure in figures(only):
        figure.write()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="?", default="", help="a word in the names of runs, such as positions")
    parser.add_argument("--facts", action="store_true", help="say facts anew, without training")
    options = parser.parse_args()
    if not runs(options.only) and (options.facts or not figures(options.only)):
        parser.error(f"No run's name contains {options.only!r}; expected a word such as positions.")
    (say_again if options.facts else make)(options.only)
