"""Attention to near tokens only, as part of a position scheme (chapter 07)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from plainformer.positions.positions import PositionScheme, offsets


class Window(PositionScheme):
    r"""A scheme for the blocks of a model whose tokens attend to near ones only: to those fewer than `width` away.

    Beltagy et al. (2020), section 3.1; Jiang et al. (2023), section 2, for a model that does not look ahead. What a
    scheme does otherwise, this one does, too: it hides what is farther away by a bias of minus infinity.
    """

    scheme: PositionScheme
    width: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)

    def rotate(
        self, rows: Float[Array, "*batch seq d_k"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_k"]:
        """Turn queries or keys as the scheme does."""
        return self.scheme.rotate(rows, positions)

    def bias(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Float[Array, "*batch heads q_seq kv_seq"]:
        """Return the scheme's bias, and minus infinity where a key is too far away."""
        near = self.sees(q_positions, kv_positions)
        hidden = jnp.repeat(jnp.where(near, 0, -jnp.inf)[..., None, :, :], self.num_heads, axis=-3)
        bias = self.scheme.bias(q_positions, kv_positions)
        return hidden if bias is None else bias + hidden

    def sees(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Bool[Array, "*batch q_seq kv_seq"]:
        """Say which keys are fewer than `width` positions away."""
        return jnp.abs(offsets(q_positions, kv_positions)) < self.width
