"""Write the numbers of the live figure `surprise`: what the book's own decoder expected at each letter of a few texts.

`make models` runs it, after the training.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from train_decoder import ROOT

import plainformer as pf
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "widgets" / "surprise.json"
# Of the kind that the model has learned from; plain English about something else; the same words in another order; and
# a passage that comes twice.
TEXTS = [
    "If the object is a sequence, the method returns the number of its items.",
    "The cat sat on the wall and looked at the moon over the old town.",
    "Town moon the wall over cat the looked old on and the sat the at.",
    "Zofia paid 734 zloty. Zofia paid 734 zloty. Zofia paid 734 zloty.",
]
SHOWN = 5


def surprise_numbers(model: pf.Decoder, vocabulary: pf.Vocabulary) -> dict:
    """Each text with its surprises in nats, and the letters that were likeliest at each place; the first is given."""

    def numbers(text: str) -> dict:
        ids = np.asarray(vocabulary.encode(text))
        log_probs = np.asarray(jax.nn.log_softmax(model(jnp.asarray(ids)))[:-1], np.float64)
        order = np.argsort(-log_probs, axis=1)[:, :SHOWN]
        expected = [
            [[vocabulary.decode([int(w)]), round(float(np.exp(row[w])), 4)] for w in likeliest]
            for row, likeliest in zip(log_probs, order, strict=True)
        ]
        surprises = -log_probs[np.arange(len(ids) - 1), ids[1:]]
        return {"text": text, "surprises": surprises.round(4).tolist(), "expected": expected}

    return {"texts": [numbers(text) for text in TEXTS]}


def write(path: Path = NUMBERS) -> None:
    """Write the numbers of the stored model."""
    numbers = surprise_numbers(*load_pretrained("decoder"))
    path.write_text(json.dumps(numbers, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
