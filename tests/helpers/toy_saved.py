"""Modules to save that are made in no time: a toy of nested configurations, with annotations that are strings."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def filled(model_class, config, seed: int = 0):
    """A model with any numbers in it, which is quicker than to draw each matrix as it should be."""
    shapes = eqx.filter_eval_shape(lambda: model_class(config, key=jax.random.key(0)))
    numbers = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(numbers.normal(size=leaf.shape), leaf.dtype), shapes)


@dataclasses.dataclass(frozen=True)
class PartConfig:
    """The configuration of a part."""

    width: int = 3
    num_layers: int = 2
    activation: str = "gelu"


@dataclasses.dataclass(frozen=True)
class ToyConfig:
    """A configuration that holds others; the second may be missing."""

    vocab_size: int = 7
    first: PartConfig = PartConfig()
    second: PartConfig | None = None
    is_tied: bool = True

    def __post_init__(self):
        if self.vocab_size < 1:
            raise ValueError(f"vocab_size is {self.vocab_size}; expected at least 1.")


class Toy(eqx.Module):
    """Layers of two parts, and an output that may be missing."""

    embedding: jax.Array
    layers: tuple[dict, ...]
    output: jax.Array | None
    activation: str = eqx.field(static=True)
    config: ToyConfig = eqx.field(static=True)

    def __init__(self, config: ToyConfig, *, key: jax.Array):
        def drawn(number, *shape):
            return jax.random.normal(jax.random.fold_in(key, number), shape)

        parts = [part for part in (config.first, config.second) if part is not None]
        widths = [part.width for part in parts for _ in range(part.num_layers)]
        self.embedding = drawn(0, config.vocab_size, config.first.width)
        self.layers = tuple({"weight": drawn(n, width, width)} for n, width in enumerate(widths, start=1))
        self.output = None if config.is_tied else drawn(99, config.vocab_size)
        self.activation, self.config = config.first.activation, config

    def __call__(self, tokens):
        x = self.embedding[tokens]
        for layer in self.layers:
            x = x + jnp.tanh(x @ layer["weight"])
        return x


class Quiet(Toy):
    """A toy by another name, without annotations of its own."""
