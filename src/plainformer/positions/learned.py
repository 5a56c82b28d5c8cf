"""Positions as a learned table, one vector for each (chapter 05)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import check_positive, checked, refuse
from plainformer.positions.positions import PositionScheme


class LearnedPositions(PositionScheme):
    r"""One learned vector per position, added to the token vectors.

    Implements `eq-positions-learned`, and by it `eq-positions-embed`; Gehring et al. (2017), section 3.1.

    **Arguments** `max_len`, for how many positions there is a vector; `d_model`, width of a token; `key`, for the table
    (normal, standard deviation 0.02).
    """

    table: Float[Array, "max_len d_model"]

    def __init__(self, max_len: int, d_model: int, *, key: PRNGKeyArray):
        check_positive(max_len=max_len, d_model=d_model)
        self.table = 0.02 * jax.random.normal(key, (max_len, d_model))

    @checked
    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Add to each row of `x` the vector of its position; `None` counts from 0.

        Raises `ValueError` if a position lies outside the table; a compiled function raises when it runs.
        """
        max_len, seq = self.table.shape[0], x.shape[-2]
        expected = f"0 to {max_len - 1}. The table has a vector for these only; make it longer for more."
        if positions is None:
            if seq > max_len:
                raise ValueError(f"Position {max_len} is out of range; expected {expected}")
            return x + self.table[:seq].astype(x.dtype)
        positions = refuse(positions, (positions < 0) | (positions >= max_len), "positions", expected)
        return x + jnp.take(self.table, positions, axis=0).astype(x.dtype)
