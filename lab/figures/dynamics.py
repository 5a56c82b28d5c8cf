"""Write the weights that the live figure `dynamics` runs: one model of each kind.

`make models` runs it, after the training.
"""

import json

import numpy as np

from lab.records import ROOT
from plainformer.models.dynamics import (
    Composition,
    ResidualLayer,
    TriangularLayer,
    TurningLayer,
    VolumePreservingAttention,
    above_diagonal,
)
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "widgets" / "dynamics.json"
SHOWN = ("volume_preserving", "residual", "turning")
NUMBER = 0  # of the five models of a kind


def numbers_of(array) -> list:
    """The shortest decimals that tell single-precision numbers apart."""
    array = np.asarray(array)
    return [float(str(np.float32(number))) for number in array] if array.ndim == 1 else [numbers_of(a) for a in array]


def step_of(weight, bias) -> dict:
    """One residual step."""
    return {"weight": numbers_of(weight), "bias": numbers_of(bias)}


def layer_numbers(layer) -> dict:
    """What the figure needs of a layer."""
    if isinstance(layer, VolumePreservingAttention):
        above = above_diagonal(layer.entries, layer.d_model)
        return {"form": numbers_of(above - above.T)}
    if isinstance(layer, TurningLayer):
        return {name: numbers_of(getattr(layer, name)) for name in ("weight", "bias", "readout")}
    if isinstance(layer, ResidualLayer):
        return {"steps": [step_of(layer.weight, layer.bias)]}
    assert isinstance(layer, TriangularLayer)
    size = len(layer.bias_before)
    before, after = above_diagonal(layer.before, size), above_diagonal(layer.after, size).T
    return {"steps": [step_of(before, layer.bias_before), step_of(after, layer.bias_after)]}


def dynamics_numbers(model: Composition) -> list[dict]:
    """The layers of a model, in order."""
    return [layer_numbers(layer) for layer in model.layers]


def write() -> None:
    """Write one model of each kind that is shown."""
    models, _ = load_pretrained("dynamics")
    numbers = {kind: dynamics_numbers(models.one(kind, NUMBER)) for kind in SHOWN}
    NUMBERS.write_text(json.dumps(numbers, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
