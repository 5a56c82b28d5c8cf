"""Write what the live figure `modern` shows: the machines of `lab/walk`, their configurations and losses.

`make models` runs it, after the training.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

from lab.records import LAB, ROOT
from lab.walk.run import CHANGES, LENGTH, NAMES, WORDS, config_of

NUMBERS = ROOT / "widgets" / "modern.json"
# What a cost depends on, or the drawing.
FIELDS = ("norm", "norm_placement", "activation", "position_scheme", "use_bias", "qk_norm", "num_kv_heads", "sinks")
# When a well-known model, or the paper that made it known, had the change; the chapter names who proposed it.
YEARS = {
    "as in 2017": (2017, "the paper by Vaswani et al."),
    "norm before": (2019, "GPT-2"),
    "RMS norm": (2019, "T5"),
    "SwiGLU": (2020, "the paper by Shazeer"),
    "rotary": (2021, "the paper by Su et al."),
    "no biases": (2022, "PaLM"),
    "untied": (2023, "Llama"),
    "norm of queries and keys": (2023, "a vision transformer of 22 billion numbers"),
    "grouped heads": (2023, "Mistral 7B"),
    "windows in turn": (2024, "Gemma 2"),
    "sinks": (2025, "gpt-oss"),
}


def machine(name: str, losses: list[float]) -> dict[str, Any]:
    """One machine of the walk, as the figure reads it."""
    config = config_of(name)
    fields: dict[str, Any] = {field: getattr(config.stack, field) for field in FIELDS}
    fields |= {"d_ff": config.stack.inner_width, "window": config.stack.window, "tied": config.tied_embedding}
    year, of = YEARS[name]
    return {"name": name, "year": year, "of": of, "changed": list(CHANGES[name]), "losses": losses, **fields}


def numbers() -> dict[str, Any]:
    """All that the figure reads."""
    recorded = json.loads((LAB / "walk" / "record.json").read_text(encoding="utf-8"))["machines"]
    sizes = dataclasses.asdict(config_of(NAMES[0]).stack)
    shared = {name: sizes[name] for name in ("d_model", "num_layers", "num_heads")}
    machines = [machine(name, [round(loss, 3) for loss in recorded[name]["above"]]) for name in NAMES]
    return {"vocab_size": WORDS, "context_len": LENGTH, **shared, "machines": machines}


def write(path: Path = NUMBERS) -> None:
    """Write the file."""
    path.write_text(json.dumps(numbers(), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
