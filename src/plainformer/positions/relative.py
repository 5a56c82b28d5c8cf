"""Position as a learned bias on the scores, by buckets of distances, as in T5 (chapter on positions)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import Positive, checked
from plainformer.positions.positions import Place, PositionScheme, offsets


@checked
def relative_buckets(
    offsets: Integer[Array, "*batch q_seq kv_seq"],
    *,
    num_buckets: Positive = 32,
    max_distance: Positive = 128,
    causal: bool = False,
) -> Integer[Array, "*batch q_seq kv_seq"]:
    r"""Sort distances into buckets: near ones have a bucket each, farther ones share wider and wider buckets.

    Implements `eq-positions-buckets`; Raffel et al. (2020), section 2.1.

    Args:
        offsets: position of the key minus position of the query.
        num_buckets: a multiple of 4, or of 2 if `causal`.
        max_distance: from this distance on, all share the last bucket; more than half of the buckets of a direction.
        causal: whether keys lie in the past only. If not, half of the buckets are for keys that come after the query.

    Returns:
        The bucket of each pair, from 0 to `num_buckets - 1`, int32. How far each bucket reaches, the paper leaves to
        its code.
    """
    bucket_of_distance = _bucket_of_distance(num_buckets, max_distance, causal)
    offsets = offsets.astype(int)
    distances = jnp.clip(-offsets if causal else jnp.abs(offsets), 0, max_distance)
    buckets = bucket_of_distance[distances]
    return buckets if causal else jnp.where(offsets > 0, buckets + num_buckets // 2, buckets)


def _bucket_of_distance(num_buckets: int, max_distance: int, causal: bool) -> Integer[Array, " distances"]:
    """The bucket of each distance in one direction, from 0 to `max_distance`, beyond which nothing changes."""
    unit = 2 if causal else 4
    if num_buckets % unit:
        shares = "half for near distances, half for far ones" + ("" if causal else ", both before and after the query")
        raise ValueError(f"num_buckets is {num_buckets}; expected a multiple of {unit}: {shares}.")
    in_direction = num_buckets if causal else num_buckets // 2
    near = in_direction // 2
    if max_distance <= near:
        raise ValueError(
            f"max_distance is {max_distance}; expected more than {near}, since distances 0 to {near - 1} have a bucket "
            f"each if num_buckets is {num_buckets}. Take a larger distance, or fewer buckets."
        )
    distances = np.arange(max_distance + 1)
    part_of_the_way = np.log(np.maximum(distances, near) / near) / np.log(max_distance / near)
    far = np.minimum(near + (part_of_the_way * (in_direction - near)).astype(int), in_direction - 1)
    return jnp.asarray(np.where(distances < near, distances, far), jnp.int32)


class RelativePositions(PositionScheme):
    r"""A learned bias for every head and every bucket of distances, as in T5.

    Implements `eq-positions-relative`; Raffel et al. (2020), section 2.1.

    Args:
        num_heads: number of query heads.
        num_buckets, max_distance, causal: as for `relative_buckets`.
        key: random key for the table (normal, standard deviation 0.02).
    """

    can_slide = True
    acts_on_scores = True
    table: Float[Array, "num_buckets heads"]
    max_distance: int = eqx.field(static=True)
    causal: bool = eqx.field(static=True)

    @checked
    def __init__(
        self,
        num_heads: Positive,
        *,
        num_buckets: Positive = 32,
        max_distance: Positive = 128,
        causal: bool = False,
        key: PRNGKeyArray,
    ):
        _bucket_of_distance(num_buckets, max_distance, causal)  # raises if the sizes do not fit
        self.table = 0.02 * jax.random.normal(key, (num_buckets, num_heads))
        self.max_distance, self.causal = max_distance, causal

    @classmethod
    def made_for(cls, config, place: Place, *, key: PRNGKeyArray) -> "RelativePositions":
        """Make a table with a column for each head."""
        buckets = {"num_buckets": config.num_buckets, "max_distance": config.max_distance}
        return cls(config.num_heads, **buckets, causal=place.causal, key=key)

    @checked
    def bias(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Float[Array, "*batch heads q_seq kv_seq"]:
        """Return what is added to the scores of each head."""
        buckets = relative_buckets(
            offsets(q_positions, kv_positions),
            num_buckets=self.table.shape[0],
            max_distance=self.max_distance,
            causal=self.causal,
        )
        return jnp.moveaxis(self.table[buckets], -1, -3)
