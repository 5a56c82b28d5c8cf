"""Train the small models that later chapters and live figures use, and write what is made from them.

`make models` runs it: every `train_*.py` beside it writes models with their card into `models/`, two at a time, then
every `*_record.py` measures what they do, and every `*_figure.py` writes what a live figure shows of them into
`widgets/`. `make models ONLY=positions` runs only the scripts whose names contain that word. Training is checkpointed
under `build/models`, so that a run that was stopped goes on; what is finished there is not trained again.

    python tools/models/train_models.py staircase --facts      says its record anew, in card and facts, without training
"""

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType

import checksums
from records import MODELS, write_record

MINUTES = Path(__file__).parent / "minutes.json"  # what each training took when it was last done from the start


def scripts(pattern: str, only: str = "") -> list:
    """The modules beside this one whose names fit a pattern and contain a word."""
    here = Path(__file__)
    paths = [path for path in sorted(here.parent.glob(pattern)) if path.stem != here.stem and only in path.stem]
    return [import_module(path.stem) for path in paths]


def train(name: str) -> float:
    """Run one script, in a process of its own; return the minutes that it took."""
    begin = time.monotonic()
    import_module(name).train()
    return round((time.monotonic() - begin) / 60, 1)


def plan(names: list[str], minutes: dict[str, float]) -> str:
    """What will be trained, and how long that took on two processors."""
    lines = [f"  {name}: {f'{minutes[name]:g} min' if name in minutes else 'not timed yet'}" for name in names]
    known = sum(minutes.get(name, 0) for name in names)
    return "\n".join([f"To train, two at a time, {known / 120:.1f} h or more from the start:", *lines])


def name_of(script: ModuleType) -> str:
    """The name of what a script makes, which is that of its card, and of its record if `RECORD` says no other."""
    return script.__name__.removeprefix("train_").removesuffix("_record")


def say_again(only: str) -> None:
    """Write facts and cards of records anew, from the numbers that stand in them."""
    for script in scripts("train_*.py", only) + scripts("*_record.py", only):
        if hasattr(script, "facts"):
            card_name = name_of(script)
            name = getattr(script, "RECORD", card_name)
            found = json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))
            found.pop("facts", None)
            write_record(name, found, script.card(found), script.facts(found), card_name)
    checksums.write()


if __name__ == "__main__":
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    if not any(scripts(pattern, only) for pattern in ("train_*.py", "*_record.py", "*_figure.py")):
        sys.exit(f"No script's name contains {only!r}; expected a word such as positions.")
    if "--facts" in sys.argv:
        say_again(only)
        sys.exit()
    names = [script.__name__ for script in scripts("train_*.py", only)][::-1]  # one of the last takes longest
    minutes = json.loads(MINUTES.read_text(encoding="utf-8"))
    print(plan(names, minutes), flush=True)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for name, taken in zip(names, pool.map(train, names), strict=True):
            print(f"{name}: done in {taken:g} min", flush=True)
            minutes[name] = max(taken, minutes.get(name, 0))
            MINUTES.write_text(json.dumps(dict(sorted(minutes.items())), indent=2) + "\n", encoding="utf-8")
    checksums.write()  # what measures the models asks for them by their checksums
    for script in scripts("*_record.py", only):
        script.write()
    checksums.write()
    for script in scripts("*_figure.py", only):
        script.write()
