"""Write the numbers of the live figure `sampling`: logits of the book's own decoder after three prompts.

`make models` runs it, after the training. The figure computes everything else in the reader's browser.
"""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from train_decoder import ROOT

import plainformer as pf
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "widgets" / "sampling.json"
# After these the model is nearly certain, hesitates between a few letters, and hesitates between many.
PROMPTS = ["The for statem", "The object is a", "The for statement is used to "]


def sampling_numbers(model: pf.Decoder, vocabulary: pf.Vocabulary) -> dict:
    """The vocabulary, one string per id, and the logits after each prompt, to four decimals."""

    def logits_after(prompt: str) -> list[float]:
        row = model(jnp.asarray(vocabulary.encode(prompt)))[-1]
        return [round(logit, 4) for logit in np.asarray(row, np.float64).tolist()]

    return {
        "vocabulary": [vocabulary.decode([number]) for number in range(len(vocabulary))],
        "prompts": [{"text": prompt, "logits": logits_after(prompt)} for prompt in PROMPTS],
    }


def write(path: Path = NUMBERS) -> None:
    """Write the numbers of the stored model."""
    numbers = sampling_numbers(*load_pretrained("decoder"))
    path.write_text(json.dumps(numbers, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
