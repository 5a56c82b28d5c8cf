"""Language models small enough to know by heart, and drawn ones, with what sampling and beam search ask of them."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Sizes:
    """As much of a configuration as the searches read."""

    vocab_size: int
    context_len: int


class Traces:
    """How often a model was traced."""

    count = 0


class Bigram(eqx.Module):
    """A table of logits: row i says what follows token i. It needs no cache, as it remembers a single token."""

    table: jax.Array
    config: Sizes = eqx.field(static=True)
    traces: Traces = eqx.field(static=True)

    def __init__(self, table, context_len=9):
        self.table = jnp.asarray(table)
        self.config, self.traces = Sizes(len(table), context_len), Traces()

    def __call__(self, tokens):
        return self.table[tokens]

    def make_cache(self, capacity=None, *, batch=()):
        return ()

    def extend(self, tokens, cache, positions):
        self.traces.count += 1
        return jax.nn.one_hot(tokens, self.config.vocab_size, dtype=self.table.dtype), cache

    def logits(self, rows):
        return rows @ self.table


def drawn(kind, config, seed=0):
    """A model with all its parameters drawn by NumPy, for which nothing is compiled; a seed is a number or a key."""
    seed = jax.random.key_data(seed) if isinstance(seed, jax.Array) else seed
    numbers = np.random.default_rng(np.ravel(seed))
    shapes = eqx.filter_eval_shape(lambda key: kind(config, key=key), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(0.5 * numbers.normal(size=leaf.shape), float), shapes)
