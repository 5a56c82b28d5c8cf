"""Where a recorded run goes: its numbers beside the stored models, with a card that says what was done."""

import json
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "models"


def write_record(name: str, numbers: dict, card: str) -> None:
    """Write `models/<name>.json`, which `pf.data.load_record` reads, and `models/<name>.md`."""
    (MODELS / f"{name}.json").write_text(json.dumps(numbers, ensure_ascii=False) + "\n", encoding="utf-8")
    (MODELS / f"{name}.md").write_text(card, encoding="utf-8")
