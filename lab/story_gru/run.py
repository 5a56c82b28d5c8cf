"""Train a recurrent network on the stories of the little world, as the strongest simple opponent of the decoder.

No weights are kept: `record.json` holds what came out, judged as the rows of the staircase are.
"""

from functools import partial

import jax
import numpy as np

import plainformer as pf
from lab import growing
from lab.growing import SEEDS, WORDS
from lab.records import BUILD, kept
from plainformer.models.recurrent import RecurrentConfig, RecurrentModel

KEPT = BUILD / "story_gru"
WIDTH, RATES, CLIP_NORM = 176, (0.003, 0.01, 0.03, 0.1), 1.0


def model_of(seed: int) -> RecurrentModel:
    """A GRU with as many numbers as the decoder, untrained."""
    return RecurrentModel(RecurrentConfig(WORDS, WIDTH, "gru"), key=jax.random.key(seed))


def result(rate: float, seed: int) -> dict:
    """What it gives to the stories kept back; kept under `build`."""
    return kept(KEPT / f"{rate:g}-{seed}.json", partial(judged_after, rate, seed))


def judged_after(rate: float, seed: int) -> dict:
    """The same after a training of as many steps on the same batches as the decoder."""
    training = pf.TrainingConfig(
        num_steps=growing.ROWS["decoder"].num_steps,
        learning_rate=rate,
        warmup_steps=100,
        weight_decay=0.1,
        clip_norm=CLIP_NORM,
        seed=seed,
    )
    loss, directory = pf.training.next_token_loss, KEPT / f"{rate:g}-{seed}"
    model, _ = pf.fit(model_of(seed), loss, growing.batches_of(seed), training, directory=directory)
    return growing.judged(growing.expected_by(model))


def results() -> dict:
    """All rates with the first seed, and the better one with the others."""
    found = {f"{rate:g}": [result(rate, 0)] for rate in RATES}
    best = min(found, key=lambda rate: found[rate][0]["above"])
    found[best] += [result(float(best), seed) for seed in SEEDS[1:]]
    return {"parameters": pf.count_parameters(model_of(0)), "rates": found}


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: nats per word above the lowest at the best rate, mean of its seeds."""
    best = min(found["rates"].values(), key=lambda seeds: seeds[0]["above"])
    return {"above": f"{np.mean([each['above'] for each in best]):.2f}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    kinds = ("wears", "where 1", "where 2", "where 3", "who", "light")
    head = ["rate", "nats above the lowest", *kinds]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for rate, seeds in found["rates"].items():
        for each in seeds:
            shares = [f"{100 * each['kinds'][kind][1]:.0f} %" for kind in kinds]
            lines.append(f"| {rate} | {each['above']:.4f} | {' | '.join(shares)} |")
    table = "\n".join(lines)
    return f"""# A recurrent network on the stories of the little world

A GRU of {WIDTH} numbers, {found["parameters"]:,} learned ones, beside the decoder of `lab/staircase`: the same stories
and batches, {growing.ROWS["decoder"].num_steps:,} steps of AdamW, gradients clipped at {CLIP_NORM:g}, and the same
stories to be judged on. No weights are kept; the numbers stand in `record.json`. Settings:
`lab/story_gru/run.py`; `make models ONLY=story_gru` trains it again.

- **Result.** Nats per word above the lowest loss possible, and right answers to the questions of each kind; the best
  rate with seeds 0, 1 and 2, the others with seed 0:

{table}

- **Licence.** The numbers are under Apache-2.0, as the code.
"""
