"""Attention to near tokens only, as part of a position scheme (chapter on generation)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from plainformer.checks import Positive, checked
from plainformer.positions.positions import PositionScheme, near_keys, offsets


class Window(PositionScheme):
    r"""A scheme for the blocks of a model whose tokens attend to near ones only: to those fewer than `width` away.

    Beltagy et al. (2020), section 3.1; Jiang et al. (2023), section 2, for a model that does not look ahead. In a
    block the scheme's turns, biases and hidden keys stay.
    """

    acts_on_scores = True
    scheme: PositionScheme
    width: int = eqx.field(static=True)

    @checked
    def __init__(self, scheme: PositionScheme, width: Positive):
        self.scheme, self.width = scheme, width

    def rotate(
        self, rows: Float[Array, "*batch seq d_k"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_k"]:
        """Turn queries or keys as the scheme does."""
        return self.scheme.rotate(rows, positions)

    def bias(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Float[Array, "*batch heads q_seq kv_seq"] | None:
        """Return the scheme's bias."""
        return self.scheme.bias(q_positions, kv_positions)

    def sees(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Bool[Array, "*batch q_seq kv_seq"]:
        """Say which keys are fewer than `width` positions away."""
        near = jnp.abs(offsets(q_positions, kv_positions)) < self.width
        others = near_keys(self.scheme, q_positions, kv_positions)
        return near if others is None else near & others
