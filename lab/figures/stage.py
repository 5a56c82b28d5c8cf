"""Write what the landing page shows before a model is fetched: the arrays of the machine on its first text.

`make models` runs it, after the training. Each array is kept in whole numbers of sixteen bits, times one step for all
of it. One block is known from the inside, of the others what leaves them.
"""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import ROOT
from plainformer.models.stored import load_pretrained
from plainformer.training.arrays import to_bytes, to_json

NUMBERS = ROOT / "widgets" / "stage.safetensors"
TEXT = "Anna takes the lamp . Anna goes to the garden . where is the lamp ?"
BLOCK = 1  # the one that is open
LARGEST = 2**15 - 1


def arrays() -> dict[str, np.ndarray]:
    """What the figure draws, by the names that `pf.look` gives; `returned` are the logits."""
    model, vocabulary = load_pretrained("stories")
    logits, seen = pf.look(model, jnp.asarray(vocabulary.encode(TEXT)))
    outside = {f"stack.blocks.{n}.output" for n in range(len(model.stack.blocks))} | {
        "stack.input",
        "stack.final_norm.output",
    }
    shown = {name for name in seen if name in outside or name.startswith(f"stack.blocks.{BLOCK}.")}
    return {name: np.asarray(seen[name]) for name in sorted(shown)} | {"returned": np.asarray(logits)}


def rounded() -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Each array in whole numbers, and by what they are to be multiplied."""
    found = arrays()
    steps = {name: float(np.abs(each).max() / LARGEST) for name, each in found.items()}
    return {name: np.rint(each / steps[name]).astype(np.int16) for name, each in found.items()}, steps


def content() -> bytes:
    """The file: the arrays, and in its header the configuration and the vocabulary that the page needs to read them."""
    model, vocabulary = load_pretrained("stories")
    whole, steps = rounded()
    header: dict[str, Any] = {"text": TEXT, "block": BLOCK, "steps": steps}
    metadata = {"config": to_json(model.config), "tokenizer": vocabulary.to_json(), "recorded": json.dumps(header)}
    return to_bytes(whole, metadata)


def write(path: Path = NUMBERS) -> None:
    """Write the file."""
    path.write_bytes(content())


if __name__ == "__main__":
    write()
