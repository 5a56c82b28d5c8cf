"""Write the test digits that the live figure `patches` offers to begin with: those that the model misreads, and others.

`make models` runs it, after the training. What the model makes of them is computed in the page.
"""

import json
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

import plainformer as pf
from lab.records import ROOT
from lab.vision.run import bright
from plainformer.data.digits import Digits
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "widgets" / "digits.json"
NUM_SHOWN = 8


def chosen(model: pf.ViT, test: Digits) -> list[int]:
    """Which test images: those misread; then of other digits the one least sure, the least sure digit first."""
    probabilities = np.asarray(jax.nn.softmax(eqx.filter_jit(model)(bright(test.images))))
    labels, sure = np.asarray(test.labels), probabilities.max(axis=1)
    is_right = probabilities.argmax(axis=1) == labels
    found = np.flatnonzero(~is_right).tolist()
    for number in np.argsort(np.where(is_right, sure, np.inf)):
        if labels[number] not in labels[found]:
            found.append(int(number))
    return found[:NUM_SHOWN]


def digits_shown(model: pf.ViT) -> dict:
    """Of each image its number in the test set, its label, and how much ink is in each pixel, 0 to 16."""
    test = pf.data.digits().test

    def image_of(number: int) -> dict:
        pixels = np.rint(16 * np.asarray(test.images[number, :, :, 0])).astype(int).tolist()
        return {"number": number, "label": int(test.labels[number]), "pixels": pixels}

    return {"images": [image_of(number) for number in chosen(model, test)]}


def write(path: Path = NUMBERS) -> None:
    """Write the digits, chosen by the stored model."""
    shown = digits_shown(load_pretrained("vision")[0])
    path.write_text(json.dumps(shown, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
