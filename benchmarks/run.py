"""Run the benchmarks and write `benchmarks/RESULTS.md`: `make bench TEXT=path/to/tinyshakespeare.txt`.

Without make: `python -m benchmarks.run`, in the repository's folder.

Each part has a process of its own. What it found is kept in `RESULTS.json`, and the report is written anew after each:
a part that runs alone, or crashes, leaves what was found of the others. With other settings than the usual, both files
go to `build/benchmarks/`.
"""

import argparse
import datetime
import importlib
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.report import ROOT, Section, Settings, keep, result_of, say

# From the name on the command line to module and function.
PARTS = {
    "hardware": ("hardware", "hardware"),
    "layers": ("layers", "layers"),
    "training": ("training_step", "training_step"),
    "generation": ("generation", "generation"),
    "seq2seq": ("seq2seq", "seq2seq"),
    "vit": ("vit", "vit"),
    "memory": ("memory", "memory"),
    "plan": ("planned", "planned"),
    "length": ("growth", "growth_with_length"),
    "depth": ("growth", "compile_time"),
    "attention": ("attention_costs", "attention_costs"),
    "shakespeare": ("shakespeare", "shakespeare"),
    "multi30k": ("multi30k", "multi30k"),
}


def call(part: str, settings: Settings) -> Section:
    module, function = PARTS[part]
    return getattr(importlib.import_module(f"benchmarks.{module}"), function)(settings)


def run_part(part: str, settings: Settings) -> Section | None:
    """The part's section; `None` if there is none, and then says why."""
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            return process.submit(call, part, settings).result()
    except Exception as error:  # whatever it is, the other parts go on
        say(f"{part} failed: {str(error).strip() or type(error).__name__}")
        return None


def arguments(words=None) -> argparse.Namespace:
    usual = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        help="only these, in this order; the others keep what was found of them",
    )
    parser.add_argument("--text", help="path of Tiny Shakespeare, for the part of that name")
    parser.add_argument("--multi30k", help="folder of Multi30k, for the part of that name")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="of everything in turn (%(default)s)")
    parser.add_argument("--steps", type=int, default=usual.steps, help="of each training (%(default)s)")
    parser.add_argument("--seeds", type=int, default=usual.seeds, help="of each training (%(default)s)")
    parser.add_argument("--output", type=Path, help="where to write the report")
    chosen = parser.parse_args(words)
    for name in ("rounds", "steps", "seeds"):
        if getattr(chosen, name) < 1:
            parser.error(f"--{name} is {getattr(chosen, name)}; expected at least 1")
    return chosen


def output_of(chosen: argparse.Namespace) -> Path:
    """Where the report goes: only a run with the usual settings changes the one in the repository."""
    if chosen.output is not None:
        return chosen.output
    usual = Settings(text=chosen.text, multi30k=chosen.multi30k) == settings_of(chosen)
    return ROOT / ("benchmarks" if usual else "build/benchmarks") / "RESULTS.md"


def settings_of(chosen: argparse.Namespace) -> Settings:
    return Settings(chosen.rounds, chosen.steps, chosen.seeds, chosen.text, chosen.multi30k)


def main() -> int:
    chosen = arguments()
    settings, output = settings_of(chosen), output_of(chosen)
    started, load = f"{datetime.datetime.now():%Y-%m-%d %H:%M}", os.getloadavg()[0]
    failed = []
    if "shakespeare" in chosen.parts and not settings.text:
        say("No text was given: the part on Tiny Shakespeare will be missing. Add TEXT=path (or --text path).")
    for part in chosen.parts:
        if (section := run_part(part, settings)) is None:
            failed.append(part)
        else:
            keep(output, PARTS, part, result_of(section, settings, started, (load, os.getloadavg()[0])))
    say(f"written to {output}" + (f"; without {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
