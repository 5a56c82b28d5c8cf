"""What a run of the benchmarks found, as Markdown, and what was wanted of it."""

import datetime
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from plainformer.data.files import read_json, write_text

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("plainformer", "jax", "jaxlib", "equinox", "optax", "torch", "transformers")


class Settings(NamedTuple):
    """How long to measure: `rounds` of everything in turn; `steps` and `seeds` of each training, on `text`, the path of
    a file, and on `multi30k`, that of a folder."""

    rounds: int = 15
    steps: int = 2000
    seeds: int = 3
    text: str | None = None
    multi30k: str | None = None


class Goal(NamedTuple):
    """A figure, and what was wanted of it: `relation` is "at least" or "at most".

    A speed is a share of a limit that was measured in the same run: of what the bare product or the plain sum reaches
    on this machine, or of the fastest of the other libraries at the same work.
    """

    name: str
    value: float
    relation: str
    wanted: float
    digits: int = 2

    @property
    def reached(self) -> bool:
        return self.value >= self.wanted if self.relation == "at least" else self.value <= self.wanted


class Section(NamedTuple):
    """One part's result: a title, Markdown below it, and the figures of which something was wanted."""

    title: str
    body: str
    goals: list[Goal]


def say(line: str) -> None:
    """Tell whoever waits how far it is, on standard error."""
    print(f"{datetime.datetime.now():%H:%M:%S}  {line}", file=sys.stderr, flush=True)


def table(head, rows) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def num_cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> str:
    """The processor's name, cores and memory."""
    name = platform.processor() or platform.machine()
    memory = ""
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        name = found[1] if found else name
        total = re.search(r"MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text())
        memory = f", {int(total[1]) / 2**20:.0f} GiB of memory" if total else ""
    return f"{name}, {num_cores()} cores for this process{memory}, {platform.system()}"


def versions() -> str:
    def version(package):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return "missing"

    python = f"Python {platform.python_version()}"
    return ", ".join([python, *(f"{package} {version(package)}" for package in PACKAGES)])


def result_of(section: Section, settings: Settings, started: str, loads: tuple[float, float]) -> dict:
    """What is kept of a part: its section, and when and where it ran; `loads` are the machine's, before and after."""
    run = {
        "started": started,
        "how": f"{settings.rounds} rounds, {settings.seeds} trainings of {settings.steps:,} steps",
        "machine": machine(),
        "versions": versions(),
    }
    goals = [goal._asdict() for goal in section.goals]
    return {"title": section.title, "body": section.body, "goals": goals, "run": run, "loads": loads}


def as_markdown(results: dict[str, dict], missing=()) -> str:
    """The report on these parts, in their order; and which are `missing`."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Whatever is compared ran in turn, round after round, in one process; ratios are",
        "taken within a round. Figures are medians, with the quartiles in brackets. Quotients of the others' time by",
        "ours are above 1 where Plainformer is faster.",
        "",
        *runs_of(list(results.values())),
        "",
    ]
    goals = [Goal(**goal) for result in results.values() for goal in result["goals"]]
    if goals:
        rows = [
            [
                goal.name,
                f"{goal.value:.{goal.digits}f}",
                f"{goal.relation} {goal.wanted:g}",
                "yes" if goal.reached else "**no**",
            ]
            for goal in goals
        ]
        lines += ["## What was wanted", "", table(["figure", "measured", "wanted", "reached"], rows), ""]
    for result in results.values():
        lines += [f"## {result['title']}", "", result["body"], ""]
    if missing:
        lines += ["Not measured yet: " + ", ".join(missing) + ".", ""]
    return "\n".join(lines)


def runs_of(results: list[dict]) -> list[str]:
    """A line for each run: what it measured, when, where and with which versions."""
    together: dict[tuple, list[dict]] = {}
    for result in results:
        together.setdefault(tuple(result["run"].values()), []).append(result)
    lines = []
    for (started, how, where, packages), parts in together.items():
        titles = "; ".join(part["title"] for part in parts)
        loads = [load for part in parts for load in part["loads"]]
        lines.append(
            f"- {titles}: started {started}; {how}. {where}; load {min(loads):.1f} to {max(loads):.1f}, "
            f"this run included. {packages}."
        )
    return lines


def keep(path: Path, parts: Collection[str], part: str, result: dict) -> None:
    """Keep a part's result beside the report at `path`, and write that anew, of all results that are kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    store = path.with_suffix(".json")
    kept = (read_json(store) if store.exists() else {}) | {part: result}
    results = {part: kept[part] for part in parts if part in kept}
    write_text(store, json.dumps(results, ensure_ascii=False, indent=1) + "\n")
    write_text(path, as_markdown(results, [part for part in parts if part not in results]))
