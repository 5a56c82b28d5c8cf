"""What a run of the benchmarks found, as Markdown, and what was wanted of it."""

import datetime
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path
from typing import NamedTuple

from plainformer.data.files import write_text

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


def as_markdown(sections, settings: Settings, started: str, loads: tuple[float, float], unfinished=()) -> str:
    """The whole report; `loads` are the machine's average loads when the run began and now."""
    goals = [goal for section in sections for goal in section.goals]
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Whatever is compared ran in turn, round after round, in one process; ratios are",
        "taken within a round. Figures are medians, with the quartiles in brackets. Quotients of the others' time by",
        "ours are above 1 where Plainformer is faster.",
        "",
        f"- Machine: {machine()}; load {loads[0]:.1f} at the start, {loads[1]:.1f} now, this run included.",
        f"- Versions: {versions()}.",
        f"- Started {started}; {settings.rounds} rounds, {settings.seeds} trainings of {settings.steps:,} steps.",
        "",
    ]
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
    for section in sections:
        lines += [f"## {section.title}", "", section.body, ""]
    if unfinished:
        lines += ["Not measured yet: " + ", ".join(unfinished) + ".", ""]
    return "\n".join(lines)


def write_report(path: Path, *content, **keywords) -> None:
    """Write `as_markdown` of the same arguments, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, as_markdown(*content, **keywords))
