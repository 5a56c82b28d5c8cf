"""Train the twelve blocks of chapter 05 for five times as long, from weights as small as BERT's; write the losses.

No weights are kept: the losses are the result, and stand in `post_norm.json` with a card.
"""

import json
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import train_blocks
from records import MODELS, write_record
from train_blocks import DEPTH, SEEDS, SEQ_LEN, STACK, NextByte, Setting

import plainformer as pf
from plainformer.tokens.tokens import normal

KEPT = MODELS.parent / "build" / "models" / "post_norm"
NUM_STEPS, PER_CURVE = 5000, 20  # steps, and points of a curve
# BERT draws its matrices, 768 wide, from a normal distribution of standard deviation 0.02, cut at twice that: what goes
# through two of them keeps a quarter of its size. Matrices of our width do the same with this one.
STD = 0.02 * (768 / STACK.d_model) ** 0.5


class Longer(NamedTuple):
    """How three models are wired, started and trained."""

    placement: Literal["pre", "post"]
    start: Literal["Glorot", "BERT"]
    learning_rate: float
    warmup_steps: int


RUNS = [
    Longer("post", "Glorot", 3e-4, 1000),
    Longer("post", "Glorot", 1e-3, 1000),
    Longer("post", "BERT", 1e-3, 1000),
    Longer("post", "BERT", 3e-3, 1000),
    Longer("post", "BERT", 3e-3, 0),
    Longer("pre", "Glorot", 3e-3, 0),
]


def matrices(model: NextByte) -> list:
    """All matrices of the blocks."""
    attention, network = model.blocks.attention, model.blocks.feed_forward
    maps = attention.query, attention.key, attention.value, attention.output, network.up, network.down
    return [each.weight for each in maps]


def make(run: Longer, key) -> NextByte:
    """A model of one seed, untrained."""
    model = NextByte(Setting(run.placement, run.learning_rate, run.warmup_steps), key)
    if run.start == "Glorot":
        return model
    keys = jax.random.split(jax.random.fold_in(key, 1), len(matrices(model)))
    drawn = [STD * normal(each, old.shape, cut_at=2.0) for each, old in zip(keys, matrices(model), strict=True)]
    return eqx.tree_at(matrices, model, drawn)


def trained(run: Longer, text: np.ndarray, num_steps: int = NUM_STEPS, seeds: tuple[int, ...] = SEEDS):
    """Models of all seeds, side by side in one tree, and the losses of all steps, `(seeds, num_steps)`."""
    models = eqx.filter_vmap(lambda key: make(run, key))(jnp.stack([jax.random.key(seed) for seed in seeds]))
    batches = jnp.asarray(np.stack([train_blocks.excerpts(text, seed, num_steps) for seed in seeds]))
    rates = train_blocks.rates_of(Setting(run.placement, run.learning_rate, run.warmup_steps), num_steps)
    models, losses = train_blocks.learn(models, batches, jnp.asarray(rates))
    return models, np.asarray(losses)


def results_of(run: Longer, training: np.ndarray, validation: np.ndarray) -> dict:
    """The losses of one run, kept under `build`, where they are read if they are there."""
    kept = KEPT / f"{'-'.join(str(field) for field in (*run, len(training)))}.json"
    if not kept.exists():
        models, losses = trained(run, training)
        of_seeds = train_blocks.validation_loss(models, pf.data.consecutive_windows(validation, SEQ_LEN))
        curves = losses.reshape(len(SEEDS), PER_CURVE, -1).mean(axis=2)
        found = run._asdict() | {
            "first": [[round(float(loss), 3) for loss in seed[:10]] for seed in losses],
            "curves": [[round(float(loss), 3) for loss in curve] for curve in curves],
            "validation": [round(float(loss), 4) for loss in of_seeds],
        }
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
        print(run, found["validation"], flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def line_of(run: dict) -> str:
    """The line of a run in card and chapter."""
    warmup = f"{run['warmup_steps']:,} steps" if run["warmup_steps"] else "none"
    each = ", ".join(f"{loss:.2f}" for loss in run["validation"])
    return f"| {run['placement']}-norm | {run['start']}'s | {run['learning_rate']:g} | {warmup} | {each} |"


def card(found: dict) -> str:
    """What was done, and what came out."""
    lines = "\n".join(line_of(run) for run in found["runs"])
    return f"""# Twelve blocks of chapter 05 from smaller weights, for longer

The models of `blocks.md`, with the same data, task and optimiser, trained for {NUM_STEPS:,} steps instead of 1,000. No
weights are kept: the losses are the result, and stand in `post_norm.json`.

- **Start.** Glorot's as there; or all matrices of the blocks from a normal distribution, cut at twice its standard
  deviation of {STD:.3f}: BERT's 0.02 at width 768, carried over to width {STACK.d_model}, so that products have the
  same size.
- **Training.** {NUM_STEPS:,} steps of 8 excerpts of {SEQ_LEN} bytes; Adam, a constant rate, or with warm-up one that
  rises from zero along a straight line and then stays; seeds 0, 1 and 2.
- **Result.** Validation loss after the last step, in nats per byte:

| wiring | start | learning rate | warm-up | seeds 0, 1, 2 |
|---|---|---|---|---|
{lines}

- **Limits.** {DEPTH} blocks, one width, one text, no decay of the rate.
- **Licence.** The losses are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""


def train() -> None:
    """Train all runs, and write their losses with a card."""
    training, validation = train_blocks.as_bytes()
    found = {"training_bytes": len(training), "runs": [results_of(run, training, validation) for run in RUNS]}
    write_record("post_norm", found, card(found))


if __name__ == "__main__":
    train()
