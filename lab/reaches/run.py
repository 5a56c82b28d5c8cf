"""Measure how strongly the last output of a model depends on earlier inputs before any training; write it with a card.

Nothing is trained. `record.json` holds the numbers of the kinds of model of the chapter on relations, for three seeds.
"""

import jax
import jax.numpy as jnp
import numpy as np

from lab.recurrent.runs import COPY, KINDS, SEEDS, SYMBOLS, new_model, reach

LENGTH, SHOWN = 96, (1, 10, 40, 90)  # symbols that are read; steps back on the card
TASK = COPY[80]  # whose models are measured: they read at most this many symbols


def symbols() -> jax.Array:
    """What the models read: random symbols, the blank and the mark among them."""
    return jnp.asarray(np.random.default_rng(0).integers(SYMBOLS + 2, size=LENGTH))


def powers_of(kind, seed: int) -> list[float]:
    """The power of ten of the reach of one model as it starts, for each number of steps back."""
    sizes = np.asarray(reach(new_model(kind, TASK, seed), symbols()))
    return [round(float(power), 3) + 0 for power in np.log10(sizes)]


def results() -> dict:
    """The numbers of all kinds and seeds."""
    return {"powers": {kind: [powers_of(kind, seed) for seed in SEEDS] for kind in KINDS}}


def card(found: dict) -> str:
    """What was done, and what came out."""
    lines = [f"| model | {' | '.join(f'{back} back' for back in SHOWN)} |", "|---" * (1 + len(SHOWN)) + "|"]
    for kind, powers in found["powers"].items():
        mean = np.mean(powers, axis=0)
        lines.append(f"| {kind} | {' | '.join(f'{round(mean[back], 1) + 0:.1f}' for back in SHOWN)} |")
    table = "\n".join(lines)
    return f"""# How far gradients reach in recurrent networks and decoders

How strongly the last logits depend on the input so many steps back, in the models of {{ref}}`sec-relations` as they
start. Nothing was trained. All numbers stand in `record.json`.

- **Models.** Those of `lab/recurrent` for copying over 80 blanks, with their first weights, seeds 0 to 2.
- **Data.** {LENGTH} random symbols, each of {SYMBOLS + 2} as often as the others (`default_rng(0)`).
- **Measure.** Size of the derivative of the last logits by an input row, relative to that by the last input row; kept
  is its power of ten.
- **Result.** Mean power of ten of three seeds:

{table}

- **Limits.** One size, one way of drawing first weights. After training it is otherwise; see `lab/recurrent`. All
  settings stand in `lab/reaches/run.py`; `make models` measures anew.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
