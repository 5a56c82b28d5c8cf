"""A training run of milliseconds: a straight line through noisy points, with dropout, so that keys matter too."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from plainformer.blocks.layers import dropout
from plainformer.training.fit import fit
from plainformer.training.optimiser import TrainingConfig

CONFIG = TrainingConfig(
    num_steps=12,
    learning_rate=0.3,
    warmup_steps=3,
    weight_decay=0.2,
    clip_norm=4.0,
    evaluate_every=5,
    checkpoint_every=4,
    max_to_keep=2,
)

OTHER = {  # for every field another value than in CONFIG, but for `decay_steps`, which another schedule has
    "num_steps": 7,
    "learning_rate": 0.2,
    "warmup_steps": 1,
    "optimiser": "muon",
    "schedule": "inverse_sqrt",
    "min_lr_ratio": 0.5,
    "weight_decay": 0.4,
    "beta_1": 0.5,
    "beta_2": 0.5,
    "clip_norm": 0.5,
    "accumulation_steps": 2,
    "precision": "bfloat16",
    "rematerialise": "blocks",
    "seed": 5,
    "evaluate_every": 3,
    "checkpoint_every": 3,
    "max_to_keep": 1,
    "patience": 1,
}


class Line(eqx.Module):
    """What is trained: five numbers in, three out."""

    weight: Float[Array, "5 3"]
    bias: Float[Array, " 3"]

    def __init__(self, weight=None, bias=None):
        numbers = np.random.default_rng(20170612)
        self.weight = jnp.asarray(numbers.normal(size=(5, 3)) if weight is None else weight, jnp.float32)
        self.bias = jnp.asarray(numbers.normal(size=3) if bias is None else bias, jnp.float32)


def batch_at(step: int):
    """Twelve points of a line, and some noise."""
    numbers = np.random.default_rng([8, step])
    inputs = numbers.normal(size=(12, 5))
    targets = inputs @ np.arange(15).reshape(5, 3) / 10 + 0.7 + 0.05 * numbers.normal(size=(12, 3))
    return jnp.asarray(inputs, jnp.float32), jnp.asarray(targets, jnp.float32)


def squared_error(model, batch, key=None):
    """The mean of the squared errors; with a key, a tenth of the inputs is dropped."""
    inputs, targets = batch
    dtype = model.weight.dtype  # of fewer bits in one test
    rows = dropout(inputs, 0.1, key=key).astype(dtype) @ model.weight + model.bias[None]
    return jnp.mean((rows - targets.astype(dtype)) ** 2)


def without_key(model, batch, key):
    """The same without dropout, for comparison with what has no such keys."""
    return squared_error(model, batch)


def validation(model) -> float:
    """The loss on points that are never trained on."""
    return squared_error(model, batch_at(1_000_000))


def run(config: TrainingConfig = CONFIG, *, loss=squared_error, batches=batch_at, model=None, **rest):
    """Train the line."""
    return fit(Line() if model is None else model, loss, batches, config, progress=False, **rest)


def numbers_of(tree) -> list:
    """All arrays of a model, to compare bit for bit."""
    return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)]
