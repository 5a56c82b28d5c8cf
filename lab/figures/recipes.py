"""Write what the live figure `recipes` shows: the recorded losses of `lab/recipes_training/record.json` by recipe.

`make models` runs it, after the training.
"""

import json
from pathlib import Path
from typing import Any

from lab.recipes_training.run import ADAMW, DECAY, EVERY, STEPS, WARMUP, training_of
from lab.records import LAB, ROOT

NUMBERS = ROOT / "widgets" / "recipes.json"
FALL = round(DECAY * STEPS)
FALLS = (40, FALL, 200)  # what a reader may choose; the losses were recorded for one of them
SHOWN = ("cosine", "constant", "wsd", "inverse_sqrt", "free")


def runs() -> list[dict[str, Any]]:
    """Each recipe that was recorded while it went on: its rate, its losses along the way, and those at the end."""
    stored = json.loads((LAB / "recipes_training" / "record.json").read_text(encoding="utf-8"))
    named = [("muon", "cosine", stored["optimisers"]["muon"])]
    named += [("adamw", name, stored["schedules"][name]) for name in SHOWN]
    return [
        {"optimiser": optimiser, "schedule": name, "fall": FALL if name == "wsd" else 0, "rate": each["rate"]}
        | {"curves": each["curves"], "above": each["above"]}
        for optimiser, name, each in named
    ]


def numbers() -> dict[str, Any]:
    """All that the figure reads."""
    shared = {"steps": STEPS, "every": EVERY, "warmup": WARMUP, "falls": FALLS}
    return shared | {"left": training_of(ADAMW).min_lr_ratio, "runs": runs()}


def write(path: Path = NUMBERS) -> None:
    """Write the file."""
    path.write_text(json.dumps(numbers(), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
