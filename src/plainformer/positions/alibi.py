"""Position as a fixed bias on the scores: attention with linear biases (chapter on positions)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import Positive, checked
from plainformer.positions.positions import Place, PositionScheme, offsets


@checked
def alibi_slopes(num_heads: Positive) -> Float[Array, " heads"]:
    r"""Return how steeply the scores of each head fall with distance: a geometric sequence that ends at 2^-8.

    Implements `eq-positions-alibi-slopes`; Press et al. (2022), section 3.

    If there are not 1, 2, 4, 8, … heads, the slopes of the power of two below come first, then every other slope of the
    power above, as in the authors' code.
    """
    below = 2 ** int(np.log2(num_heads))
    slopes = 2.0 ** (-8 * np.arange(1, below + 1) / below)
    between = 2.0 ** (-8 * np.arange(1, 2 * below, 2) / (2 * below))
    return jnp.asarray(np.concatenate([slopes, between])[:num_heads], float)


class AlibiPositions(PositionScheme):
    r"""Attention with linear biases: every step of distance costs a head's scores the same amount.

    Implements `eq-positions-alibi`; Press et al. (2022), section 3. `num_heads` are those of queries.

    Differs from the paper:
        The paper has causal attention only; here keys after the query are punished like those before it.
    """

    can_slide = True
    acts_on_scores = True
    num_heads: int = eqx.field(static=True)

    @checked
    def __init__(self, num_heads: Positive):
        self.num_heads = num_heads

    @classmethod
    def made_for(cls, config, place: Place, *, key: PRNGKeyArray) -> "AlibiPositions":
        """Make the slopes of as many heads."""
        return cls(config.num_heads)

    @checked
    def bias(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Float[Array, "*batch heads q_seq kv_seq"]:
        """Return what is added to the scores of each head, never above 0."""
        distances = jnp.abs(offsets(q_positions, kv_positions)).astype(float)
        return -alibi_slopes(self.num_heads)[:, None, None] * distances[..., None, :, :]
