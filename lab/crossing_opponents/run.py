"""Train what the chapter on vision compares its reader of crossings with; write what they answer, with a card.

All learn from the same pictures as the transformer, in as many steps, at its learning rate; others are tried as knobs.
No weights are kept: the shares of right answers stand in `record.json`.
"""

import dataclasses
import json
from typing import Any

import jax
import numpy as np

import plainformer as pf
from lab.convolution import PatchConvolution
from lab.records import BUILD, ends, percent
from lab.vision_crossing.run import TRAINING, crossing_accuracy, crossing_batches, pictures_of

KEPT = BUILD / "crossing_opponents"
RATE, LOOKS = 2e-3, (500, 1000, 2000, 3000)


@dataclasses.dataclass(frozen=True)
class Run:
    """One training: which way to an answer, with coordinates or without, and the rest."""

    pooling: str
    coordinates: bool
    rate: float = RATE
    seed: int = 0
    steps: int = TRAINING.num_steps
    width: int = 64

    @property
    def name(self) -> str:
        """What it is called among those that are kept."""
        return "-".join(map(str, dataclasses.astuple(self)))

    def start(self):
        """The model before training."""
        return PatchConvolution(self.width, self.pooling, self.coordinates, key=jax.random.key(self.seed))


def measured(run: Run) -> dict[str, Any]:
    """What a run came to: its loss at some steps, and its shares of right answers about test pictures."""
    kept = KEPT / f"{run.name}.json"
    if not kept.exists():
        training, test = pf.data.digits()
        how = dataclasses.replace(TRAINING, num_steps=run.steps, learning_rate=run.rate)
        batches = crossing_batches(training, run.seed)
        model, metrics = pf.fit(
            run.start(), pf.classification_loss, batches, how, directory=KEPT / run.name, progress=False
        )
        losses = [each["loss"] for each in metrics]
        asked, held_out = (crossing_accuracy(model, pictures) for pictures in pictures_of(test))
        found = {
            "parameters": pf.count_parameters(model),
            "losses": {step: float(f"{np.mean(losses[step - 50 : step]):.3g}") for step in sorted({*LOOKS, run.steps})},
            "asked": asked,
            "held_out": held_out,
        }
        print(run.name, found, flush=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


WAYS = {
    "all": "a dense layer on all rows",
    "mean": "the mean of the rows",
    "attention": "attention by the mean of the rows",
}
TABLE = (("all", True, 1), ("mean", True, 1), ("mean", False, 2), ("attention", True, 3), ("attention", False, 2))
TURNED = ((1e-3, 1), (4e-3, 2), (8e-3, 1))  # rates of attention with coordinates, and with how many seeds


def words(run: Run) -> str:
    """What a table calls a run."""
    return f"{WAYS[run.pooling]}, {'with' if run.coordinates else 'without'} coordinates"


def at_rate(rate: float) -> str:
    """What the record calls attention with coordinates at another rate."""
    return f"{words(Run('attention', True))}, rate {rate:g}"


def results() -> dict[str, Any]:
    """All that the card states."""
    table = [[Run(pooling, coordinates, seed=seed) for seed in range(num)] for pooling, coordinates, num in TABLE]
    return {
        "table": {words(runs[0]): [measured(run) for run in runs] for runs in table},
        "turned": {
            at_rate(rate): [measured(Run("attention", True, rate, seed)) for seed in range(num)] for rate, num in TURNED
        },
    }


def percentages(shares: list[float]) -> str:
    """Shares of right answers, and their mean if there are several."""
    each = ", ".join(f"{100 * share:.2f}" for share in shares)
    return f"{100 * np.mean(shares):.2f} % ({each})" if len(shares) > 1 else f"{each} %"


def row(name: str, runs: list[dict]) -> str:
    """A line of a table: crossings as in training, and held-out ones."""
    cells = [percentages([run[kind] for run in runs]) for kind in ("asked", "held_out")]
    return f"| {name} | {' | '.join(cells)} |"


def facts(found: dict[str, Any]) -> dict[str, str]:
    """Per cent of right answers, by way to an answer and coordinates; at held-out crossings with one digit, too."""
    several = {(pooling, told): found["table"][words(Run(pooling, told))] for pooling, told, _ in TABLE}
    runs = {f"{pooling}.{'with' if told else 'without'}": each for (pooling, told), each in several.items()}
    runs |= {f"attention.with.rate.{rate:g}": found["turned"][at_rate(rate)] for rate, _ in TURNED}
    texts: dict[str, str] = {}
    for name, seeds in runs.items():
        for kind in ("asked", "held_out"):
            shares = [run[kind] for run in seeds]
            texts[f"{name}.{kind}"] = percent(float(np.mean(shares)), 2)
            texts[f"{name}.{kind}.each"] = ", ".join(percent(share, 2) for share in shares)
        shares = [100 * run["held_out"] for run in seeds]
        texts[f"{name}.held_out.one_digit"] = f"{np.mean(shares):.1f}"
        texts |= ends(f"{name}.held_out.one_digit", shares, ".1f")
    return texts


def card(found: dict[str, Any]) -> str:
    """What was done, and what came out."""
    rows = "\n".join(row(name, runs) for name, runs in found["table"].items())
    turned = "\n".join(row(name, runs) for name, runs in found["turned"].items())
    sizes = ", ".join(f"{runs[0]['parameters']:,}" for runs in found["table"].values())
    steps = ", ".join(f"{step:,}" for step in LOOKS)
    losses = "; ".join(
        ", ".join(f"{run['losses'][str(step)]:.2g}" for step in LOOKS) for (run, *_) in found["table"].values()
    )
    return f"""# What the reader of crossings is compared with

Convolutional networks that read the same patches of the same pictures as the transformer of `lab/vision_crossing`, in
blocks of the same kind, with a convolution where it has attention. No weights are kept; the shares of right answers
stand in `record.json`.

- **Data.** As in `lab/vision_crossing`: fresh pictures of training digits at each step, whose bars never point to the
  diagonal; 2,000 test pictures of each kind.
- **Models.** Patches of 8 × 8, rows of 64 numbers, three blocks: norm, a convolution of 3 × 3 places channel by channel
  and a linear map, norm, and a network of inner width 128; each adds to what came in. With coordinates, each pixel has
  its row and column, from -1 to 1, as two channels more. Parameters, in the order of the table: {sizes}.
- **Training.** {TRAINING.num_steps:,} steps of 64 pictures; AdamW, learning rate up to {RATE:g}, as for the
  transformer; seeds from 0 on. All settings stand in `lab/crossing_opponents/run.py`; `make models
  ONLY=crossing_opponents` trains again. Mean loss over the last 50 steps, at steps {steps}, seed 0: {losses}.
- **Result.** Share of right answers, mean (each seed):

| way to an answer | crossings as in training | held-out crossings |
|---|---|---|
{rows}

- **Knobs turned.** Other learning rates, seeds from 0 on:

| | crossings as in training | held-out crossings |
|---|---|---|
{turned}

- **Not turned**: the number of steps, though the loss is below 0.001 at the end with all of them; the width; the rate
  of the others; patches of another size; a kernel on pixels, other than in the plain network of `lab/vision_crossing`.
- **Licence.** The numbers are under Apache-2.0, as the code; the images are of the UCI repository.
"""
