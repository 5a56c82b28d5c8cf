"""Position as a bias on the scores: T5's learned buckets of distances, and ALiBi's fixed slopes (chapter 05)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import check_choice, check_positive
from plainformer.positions.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    unchanged,
    whole_positions,
)


def relative_buckets(
    offsets: Integer[Array, "q_seq kv_seq"], *, num_buckets: int = 32, max_distance: int = 128, causal: bool = False
) -> Integer[Array, "q_seq kv_seq"]:
    r"""Sort distances into buckets: near ones have a bucket each, farther ones share wider and wider buckets.

    Implements `eq-positions-buckets`; Raffel et al. (2020), section 2.1.

    **Arguments**

    - `offsets`: position of the key minus position of the query, `(q_seq, kv_seq)`.
    - `num_buckets`: how many buckets; a multiple of 4, or of 2 if `causal`.
    - `max_distance`: from this distance on, all share the last bucket; more than half of the buckets of a direction.
    - `causal`: whether keys lie in the past only. If not, half of the buckets are for keys that come after the query.

    **Returns** the bucket of each pair, from 0 to `num_buckets - 1`, `(q_seq, kv_seq)`, int32.

    **Raises** `ValueError` if the sizes do not fit together; `TypeError` if offsets are not whole numbers.

    **Differs from the paper** in nothing that it says; how far each bucket reaches, it leaves to its code.
    """
    offsets = whole_positions("offsets", offsets, q_seq=None, kv_seq=None)
    bucket_of_distance = _bucket_of_distance(num_buckets, max_distance, causal)
    distances = jnp.clip(-offsets if causal else jnp.abs(offsets), 0, max_distance)
    buckets = bucket_of_distance[distances]
    return buckets if causal else jnp.where(offsets > 0, buckets + num_buckets // 2, buckets)


def _bucket_of_distance(num_buckets: int, max_distance: int, causal: bool) -> Integer[Array, " distances"]:
    """The bucket of each distance in one direction, from 0 to `max_distance`, beyond which nothing changes."""
    check_positive(num_buckets=num_buckets, max_distance=max_distance)
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


def alibi_slopes(num_heads: int) -> Float[Array, " heads"]:
    r"""Say how steeply the scores of each head fall with distance: a geometric sequence that ends at 2^-8.

    Implements `eq-positions-alibi-slopes`; Press et al. (2022), section 3.

    **Arguments** `num_heads`, at least 1. If it is no power of two, the slopes of the power below come first, then
    every other slope of the power above, as in the authors' code.

    **Returns** the slopes, `(num_heads,)`, all positive. **Raises** `ValueError` if `num_heads` is below 1.
    """
    check_positive(num_heads=num_heads)
    below = 2 ** int(np.log2(num_heads))
    slopes = 2.0 ** (-8 * np.arange(1, below + 1) / below)
    between = 2.0 ** (-8 * np.arange(1, 2 * below, 2) / (2 * below))
    return jnp.asarray(np.concatenate([slopes, between])[:num_heads], float)


class RelativePositions(eqx.Module):
    r"""A learned bias for every head and every bucket of distances, as in T5.

    Implements `eq-positions-relative`; Raffel et al. (2020), section 2.1.

    **Arguments**

    - `num_heads`: number of query heads.
    - `num_buckets`, `max_distance`, `causal`: as for `relative_buckets`.
    - `key`: random key for the table (normal, standard deviation 0.02).

    **Attributes** `table`, `(num_buckets, num_heads)`. **Raises** `ValueError` if the sizes do not fit together.
    """

    table: Float[Array, "num_buckets heads"]
    max_distance: int = eqx.field(static=True)
    causal: bool = eqx.field(static=True)

    def __init__(
        self,
        num_heads: int,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        causal: bool = False,
        key: PRNGKeyArray,
    ):
        check_positive(num_heads=num_heads)
        _bucket_of_distance(num_buckets, max_distance, causal)  # raises if the sizes do not fit
        self.table = 0.02 * jax.random.normal(key, (num_buckets, num_heads))
        self.max_distance, self.causal = max_distance, causal

    def bias(
        self, q_positions: Integer[Array, " q_seq"], kv_positions: Integer[Array, " kv_seq"]
    ) -> Float[Array, "heads q_seq kv_seq"]:
        """What is added to the scores of each head, `(num_heads, q_seq, kv_seq)`."""
        buckets = relative_buckets(
            _offsets(q_positions, kv_positions),
            num_buckets=self.table.shape[0],
            max_distance=self.max_distance,
            causal=self.causal,
        )
        return self.table.T[:, buckets]

    embed = unchanged
    rotate = unchanged


class AlibiPositions(eqx.Module):
    r"""Attention with linear biases: every step of distance costs a head's scores the same amount.

    Implements `eq-positions-alibi`; Press et al. (2022), section 3.

    **Arguments** `num_heads`, the number of query heads. **Raises** `ValueError` if it is below 1.

    **Differs from the paper**, which has causal attention only: keys after the query are punished like those before it.
    """

    num_heads: int = eqx.field(static=True)

    def __init__(self, num_heads: int):
        check_positive(num_heads=num_heads)
        self.num_heads = num_heads

    def bias(
        self, q_positions: Integer[Array, " q_seq"], kv_positions: Integer[Array, " kv_seq"]
    ) -> Float[Array, "heads q_seq kv_seq"]:
        """What is added to the scores of each head, `(num_heads, q_seq, kv_seq)`, never above 0."""
        distances = jnp.abs(_offsets(q_positions, kv_positions)).astype(float)
        return -alibi_slopes(self.num_heads)[:, None, None] * distances[None, :, :]

    embed = unchanged
    rotate = unchanged


POSITIONS = ("learned", "sinusoidal", "rotary", "relative", "alibi", "none")


def new_positions(name: str, *, d_model: int, num_heads: int, max_len: int, causal: bool, key: PRNGKeyArray):
    r"""Make the position scheme that a configuration names, one of `POSITIONS`; `None` for `"none"`.

    **Arguments** `d_model`, `num_heads` and `max_len` of the model; `causal`, whether keys lie in the past only; `key`,
    random key for the schemes that learn. **Raises** `ValueError` if there is no such scheme.
    """
    check_choice("positions", name, POSITIONS)
    match name:
        case "learned":
            return LearnedPositions(max_len, d_model, key=key)
        case "sinusoidal":
            return SinusoidalPositions(d_model)
        case "rotary":
            return RotaryPositions()
        case "relative":
            return RelativePositions(num_heads, causal=causal, key=key)
        case "alibi":
            return AlibiPositions(num_heads)
    return None


def _offsets(q_positions, kv_positions) -> Integer[Array, "q_seq kv_seq"]:
    """From each query to each key, how many positions to the right."""
    q_positions = whole_positions("q_positions", q_positions, q_seq=None)
    kv_positions = whole_positions("kv_positions", kv_positions, kv_seq=None)
    return kv_positions[None, :] - q_positions[:, None]
