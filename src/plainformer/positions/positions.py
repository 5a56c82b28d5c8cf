"""What a way to tell tokens where they stand has to do, and two that are simple: nothing, and a table (chapter 05)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.checks import Positive, check_axes, checked, refuse


class PositionScheme(eqx.Module):
    r"""A way to tell tokens where they stand, by up to four methods; each does nothing unless a scheme says otherwise.

    Positions are whole numbers, `(*batch, seq)`, counted from 0.

    A scheme by which only differences of positions matter says so by `can_slide = True`: a window may then slide over a
    text that is longer than what a model reads.
    """

    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Return the token vectors, before the first block, with what is added to them; `None` counts from 0."""
        return x

    def rotate(
        self, rows: Float[Array, "*batch seq d_k"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_k"]:
        """Return queries or keys, turned; `None` counts from 0."""
        return rows

    def bias(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Float[Array, "*batch heads q_seq kv_seq"] | None:
        """Return what is added to the scores of each head; `None` for nothing."""
        return None

    def sees(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Bool[Array, "*batch q_seq kv_seq"]:
        """Say which keys are near enough to be attended to: all, unless the scheme is a window."""
        return jnp.ones(offsets(q_positions, kv_positions).shape, bool)


class NoPositions(PositionScheme):
    """Tell tokens nothing of where they stand."""

    can_slide = True


NO_POSITIONS = NoPositions()


def bias_of(
    scheme: PositionScheme,
    q_positions: Integer[Array, "*batch q_seq"],
    kv_positions: Integer[Array, "*batch kv_seq"],
    num_heads: int,
) -> Float[Array, "*batch heads q_seq kv_seq"] | None:
    """Return what a scheme adds to the scores of each head; raise `ValueError` if it is made for other heads."""
    bias = scheme.bias(q_positions, kv_positions)
    if bias is not None:
        name, hint = f"The bias of {type(scheme).__name__}", f"Make it for the {num_heads} heads here."
        axes = {"*batch": None, "heads": num_heads, "q_seq": q_positions.shape[-1], "kv_seq": kv_positions.shape[-1]}
        check_axes(name, bias, hint, **axes)
    return bias


def positions_of(x: Float[Array, "*batch seq d"], positions) -> Integer[Array, "*#batch seq"]:
    """Return a position for each row: 0, 1, 2, … unless others are given, and signed, since they are subtracted."""
    return jnp.arange(x.shape[-2]) if positions is None else positions.astype(int)


def offsets(
    q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
) -> Integer[Array, "*batch q_seq kv_seq"]:
    """Return, from each query to each key, how many positions to the right."""
    return kv_positions.astype(int)[..., None, :] - q_positions.astype(int)[..., :, None]


class LearnedPositions(PositionScheme):
    r"""One learned vector per position, added to the token vectors.

    Implements `eq-positions-learned`, and by it `eq-positions-embed`; Gehring et al. (2017), section 3.1.

    **Arguments** for how many positions there is a vector; width of a token; random key for the table (normal, standard
    deviation 0.02).
    """

    table: Float[Array, "max_len d_model"]

    @checked
    def __init__(self, max_len: Positive, d_model: Positive, *, key: PRNGKeyArray):
        self.table = 0.02 * jax.random.normal(key, (max_len, d_model))

    @checked
    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Add to each row of `x` the vector of its position; raise `ValueError` for one outside the table."""
        max_len, seq = len(self.table), x.shape[-2]
        expected = f"0 to {max_len - 1}. The table has a vector for these only; make it longer for more."
        if positions is None:
            refuse(np.arange(seq), np.arange(seq) >= max_len, "positions", expected)
            return x + self.table[:seq].astype(x.dtype)
        positions = refuse(positions, (positions < 0) | (positions >= max_len), "positions", expected)
        return x + self.table[positions].astype(x.dtype)
