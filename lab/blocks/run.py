"""Train twelve blocks, pre- and post-norm, with and without warm-up; write the losses with a card.

No weights are kept: the losses are the result. `record.json` holds them, every point the mean of ten steps.
"""

import dataclasses
import itertools
import json
import sys
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.records import BUILD, ends

STACK = pf.StackConfig(d_model=32, num_heads=4, activation="relu")
DEPTH, VOCAB_SIZE = 12, 256
NUM_STEPS, BATCH_SIZE, SEQ_LEN, SEEDS = 1000, 8, 24, (0, 1, 2)
PER_POINT = 10  # steps
FEWER, FEWER_STEPS = (3, 4, 5), 100  # blocks, in an exercise
ORDERS = 1, 2, 3, 5  # of the n-gram models


class Setting(NamedTuple):
    """How three models are wired, started and trained; `is_small` for last matrices times 1/sqrt(2L)."""

    placement: Literal["pre", "post"]
    learning_rate: float
    warmup_steps: int
    is_small: bool = False


PLACEMENTS: tuple[Literal["pre", "post"], ...] = ("pre", "post")
SETTINGS = [
    *(Setting(*each) for each in itertools.product(PLACEMENTS, (1e-3, 3e-3), (0, 200))),
    Setting("post", 3e-3, 0, is_small=True),
]


def with_smaller_last(blocks: pf.Block) -> pf.Block:
    """The same blocks with the last matrix of every sublayer divided by sqrt(2L), as in GPT-2."""

    def last(blocks):
        return blocks.attention.output.weight, blocks.feed_forward.down.weight

    return eqx.tree_at(last, blocks, [matrix / (2 * DEPTH) ** 0.5 for matrix in last(blocks)])


class NextByte(eqx.Module):
    """Twelve blocks under a causal mask that predict the next byte, without positions."""

    table: jax.Array
    blocks: pf.Block  # all twelve, stacked
    final_norm: pf.LayerNorm | None
    readout: jax.Array

    def __init__(self, setting: Setting, key, num_layers: int = DEPTH):
        table_key, readout_key, *block_keys = jax.random.split(key, 2 + num_layers)
        self.table = jax.random.normal(table_key, (VOCAB_SIZE, STACK.d_model))
        self.readout = jax.random.normal(readout_key, (STACK.d_model, VOCAB_SIZE)) / STACK.d_model**0.5
        self.final_norm = pf.LayerNorm(STACK.d_model) if setting.placement == "pre" else None
        kinds = dataclasses.replace(STACK, norm_placement=setting.placement)
        blocks = eqx.filter_vmap(lambda key: pf.make_block(kinds, key=key))(jnp.stack(block_keys))
        self.blocks = with_smaller_last(blocks) if setting.is_small else blocks

    def __call__(self, ids):
        mask = pf.causal_mask(ids.shape[-1])
        arrays, static = eqx.partition(self.blocks, eqx.is_array)
        x, _ = jax.lax.scan(lambda x, one: (eqx.combine(one, static)(x, mask), None), self.table[ids], arrays)
        return (x if self.final_norm is None else self.final_norm(x)) @ self.readout


def as_bytes() -> tuple[np.ndarray, np.ndarray]:
    """The bytes to train on, and those to validate on."""
    training, validation = (np.frombuffer(text.encode(), np.uint8) for text in pf.data.python_reference_splits())
    return training, validation


def excerpts(text: np.ndarray, seed: int, num_steps: int) -> np.ndarray:
    """Pieces that begin anywhere, one byte longer than the model reads, `(num_steps, BATCH_SIZE, SEQ_LEN + 1)`."""
    starts = np.random.default_rng(seed).integers(len(text) - SEQ_LEN, size=(num_steps, BATCH_SIZE, 1))
    return text[starts + np.arange(SEQ_LEN + 1)].astype(np.int32)


def rates_of(setting: Setting, num_steps: int) -> np.ndarray:
    """The learning rate at each step: up from zero along a straight line, then constant; without warm-up, constant."""
    steps = np.arange(1, num_steps + 1)
    return setting.learning_rate * np.minimum(1, steps / max(setting.warmup_steps, 1)).astype(np.float32)


def next_byte_loss(model: NextByte, batch):
    """Mean loss of the next byte, in nats."""
    return pf.cross_entropy(model(batch[:, :-1]), batch[:, 1:])


def steps_of_adam(model, batches, rates, loss_of):
    """The model after a step of Adam for every batch, and the losses before each."""
    parameters, static = eqx.partition(model, eqx.is_array)
    adam = optax.scale_by_adam()

    def loss(parameters, batch):
        return loss_of(eqx.combine(parameters, static), batch)

    def step(carry, batch_and_rate):
        parameters, state = carry
        batch, rate = batch_and_rate
        value, slopes = jax.value_and_grad(loss)(parameters, batch)
        updates, state = adam.update(slopes, state)
        parameters = jax.tree.map(lambda number, update: number - rate * update, parameters, updates)
        return (parameters, state), value

    (parameters, _), losses = jax.lax.scan(step, (parameters, adam.init(parameters)), (batches, rates))
    return eqx.combine(parameters, static), losses


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(eqx.if_array(0), 0, None))
def learn(models: NextByte, batches, rates):
    """The same for several models, each with batches of its own."""
    return steps_of_adam(models, batches, rates, next_byte_loss)


def trained(
    setting: Setting,
    text: np.ndarray,
    num_steps: int = NUM_STEPS,
    seeds: tuple[int, ...] = SEEDS,
    num_layers: int = DEPTH,
):
    """Models of all seeds, side by side in one tree, and their losses, `(seeds, points)`."""
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    models = eqx.filter_vmap(lambda key: NextByte(setting, key, num_layers))(keys)
    batches = jnp.asarray(np.stack([excerpts(text, seed, num_steps) for seed in seeds]))
    models, losses = learn(models, batches, jnp.asarray(rates_of(setting, num_steps)))
    return models, np.asarray(losses).reshape(len(seeds), -1, PER_POINT).mean(axis=2)


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(eqx.if_array(0), None))
def validation_loss(model: NextByte, windows):
    """Mean loss at every byte of a text but the first, given what stands before it in its window."""
    return pf.cross_entropy(model(windows.inputs), windows.targets, windows.is_token)


def results_of(setting: Setting, training: np.ndarray, validation: np.ndarray) -> dict:
    """The losses of one setting, kept under `build/models/blocks`, where they are read if they are there."""
    name = "-".join(str(field) for field in (*setting, len(training)))  # the text depends on Python's version
    kept = BUILD / "blocks" / f"{name}.json"
    if not kept.exists():
        models, curves = trained(setting, training)
        of_seeds = validation_loss(models, pf.data.consecutive_windows(validation, SEQ_LEN))
        found = setting._asdict() | {
            "validation": [round(float(loss), 4) for loss in of_seeds],
            "curves": [[round(float(loss), 4) for loss in curve] for curve in curves],
        }
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
        print(name, found["validation"], flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def fewer_blocks(training: np.ndarray) -> dict[str, list[list[float]]]:
    """The losses of the first steps of post-norm with fewer blocks, by their number."""
    setting, curves = Setting("post", 3e-3, 0), {}
    for number in FEWER:
        _, of_seeds = trained(setting, training, FEWER_STEPS, num_layers=number)
        curves[str(number)] = [[round(float(loss), 4) for loss in curve] for curve in of_seeds]
        print(number, "blocks", curves[str(number)], flush=True)
    return curves


def spread(losses: list[float]) -> str:
    """Mean and standard deviation of the seeds."""
    return f"{np.mean(losses):.2f} ± {np.std(losses, ddof=1):.2f}"


def table(runs: list[dict]) -> str:
    """A line of the card for each setting."""
    lines = [
        "| placement | learning rate | warm-up | last matrices | validation loss | seeds 0, 1, 2 |",
        "|---|---|---|---|---|---|",
    ]
    for run in runs:
        warmup = f"{run['warmup_steps']} steps" if run["warmup_steps"] else "none"
        last = f"times 1/√{2 * DEPTH}" if run["is_small"] else "Glorot"
        each = ", ".join(f"{loss:.3f}" for loss in run["validation"])
        rate = f"{run['learning_rate']:g}"
        lines.append(f"| {run['placement']} | {rate} | {warmup} | {last} | {spread(run['validation'])} | {each} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: sizes of the texts, losses by counting, least and largest losses of pre- and post-norm."""
    texts = {name: f"{found[name]:,}" for name in ("training_bytes", "validation_bytes")}
    texts |= {f"counted.{order}": f"{loss:.2f}" for order, loss in found["counted"].items()}
    for placement in PLACEMENTS:
        runs = [run for run in found["runs"] if run["placement"] == placement and not run["is_small"]]
        texts |= ends(f"{placement}.validation", [loss for run in runs for loss in run["validation"]])
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    python, training, validation = (found[name] for name in ("python", "training_bytes", "validation_bytes"))
    parameters = pf.count_parameters(eqx.filter_eval_shape(NextByte, SETTINGS[-1], jax.random.key(0)))
    counts = ", ".join(f"{loss:.2f} with n = {order}" for order, loss in found["counted"].items())
    fewer = "seeds 0, 1, 2:\n  " + "; ".join(
        f"{number} blocks {', '.join(f'{np.mean(curve[-2:]):.2f}' for curve in curves)}"
        for number, curves in found["fewer_blocks"].items()
    )
    return f"""# Twelve blocks, with pre- and with post-norm

Where the norm stands, at two learning rates, with and without warm-up, and post-norm once with other initial weights.
No weights are kept: the losses are the result. They stand in `record.json`, every point of a curve the
mean of {PER_POINT} steps.

- **Data.** `plainformer.data.python_reference_splits()` of Python {python}, as bytes: {training:,} to train on,
  {validation:,} to validate on (whole topics; no paragraph is in both).
- **Model.** {DEPTH} blocks of width {STACK.d_model} with {STACK.num_heads} heads, relu, a causal mask, no positions;
  {parameters:,} parameters, and one more norm in pre-norm. Weights of the blocks start as Glorot and Bengio propose,
  those of each head by themselves; in the last setting the last matrix of every sublayer is divided by
  √{2 * DEPTH}, as in GPT-2.
- **Training.** {NUM_STEPS:,} steps of {BATCH_SIZE} excerpts of {SEQ_LEN} bytes, seeds 0 to 2 for weights and excerpts;
  Adam, no dropout, no weight decay. The learning rate is constant, with warm-up after it has risen from zero along a
  straight line. All settings stand in `lab/blocks/run.py`; `make models` trains them again.
- **Result.** Validation loss after the last step, in nats per byte, mean and standard deviation of three seeds:

{table(found["runs"])}

- **Fewer blocks.** Post-norm at a rate of 0.003 without warm-up, mean loss of the steps 81 to {FEWER_STEPS}, {fewer}.
- **Opponents.** Smoothed n-gram models, counted on the same text, have on the same bytes
  {counts}.
- **Limits.** One depth, one width, one text, one length of warm-up, {NUM_STEPS:,} steps without a decay of the rate;
  nothing was tuned. On other versions of Python the text differs a little, and so do the losses.
- **Licence.** The losses are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""


def results() -> dict:
    """Train all settings and return their losses."""
    training, validation = as_bytes()
    runs = [results_of(setting, training, validation) for setting in SETTINGS]
    counted = {
        str(order): round(pf.training.NgramModel(training.tolist(), order, VOCAB_SIZE).loss(validation.tolist()), 4)
        for order in ORDERS
    }
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "training_bytes": len(training),
        "validation_bytes": len(validation),
        "runs": runs,
        "counted": counted,
        "fewer_blocks": fewer_blocks(training),
    }
