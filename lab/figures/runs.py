"""Write the recorded losses that the live figure `runs` replays: those of `lab/blocks`, and nothing else of it.

`make models` runs it, after the training.
"""

import json
from pathlib import Path

from lab.blocks.run import BATCH_SIZE, PER_POINT, SEQ_LEN
from lab.records import LAB, ROOT

NUMBERS = ROOT / "widgets" / "runs.json"
NAMES = {"placement": "placement", "learning_rate": "rate", "warmup_steps": "warmup", "is_small": "isSmall"}


def run_numbers() -> dict:
    """Each run's setting and its losses, a list for each seed; those on held-out text, and those of counting models."""
    stored = json.loads((LAB / "blocks" / "record.json").read_text(encoding="utf-8"))
    runs = [
        {short: run[name] for name, short in NAMES.items()} | {part: run[part] for part in ("validation", "curves")}
        for run in stored["runs"]
    ]
    return {"perPoint": PER_POINT, "bytesPerStep": BATCH_SIZE * SEQ_LEN, "counted": stored["counted"], "runs": runs}


def write(path: Path = NUMBERS) -> None:
    """Write the recorded losses."""
    path.write_text(json.dumps(run_numbers(), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
