"""A model whose annotations are strings, as the first line makes them."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax


@dataclasses.dataclass(frozen=True)
class ScaleConfig:
    """How many numbers there are."""

    size: int


class Scale(eqx.Module):
    """A vector."""

    vector: jax.Array
    config: ScaleConfig = eqx.field(static=True)

    def __init__(self, config: ScaleConfig, *, key: jax.Array):
        self.vector = jax.random.normal(key, (config.size,))
        self.config = config
