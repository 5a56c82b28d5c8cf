"""Attention without the softmax, whose sums can be taken in any order: linear attention (chapter on efficiency)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.efficiency import from_blocks, to_blocks
from plainformer.attention.kernels import AttentionKernel
from plainformer.attention.mask import EVERYTHING, Mask
from plainformer.attention.self_attention import at_least_float32, causal_mask, weighted_average
from plainformer.checks import Positive, check_axes, checked
from plainformer.positions.positions import PositionScheme


@checked
def positive_features(rows: Float[Array, "*batch seq d_k"]) -> Float[Array, "*batch seq d_k"]:
    r"""Make the entries of queries or keys positive: elu(x) + 1, which is x + 1 above zero and exp(x) below.

    Implements `eq-efficiency-features`; Katharopoulos et al. (2020), equation 7.
    """
    return jax.nn.elu(rows) + 1


@checked
def linear_weights(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    mask: Bool[Array, "*#batch q_seq kv_seq"] | Mask | None = None,
) -> Float[Array, "*batch q_seq kv_seq"]:
    r"""Return how much each query attends to each key: products of positive features, divided by their sum.

    Implements `eq-efficiency-linear-weights`; Katharopoulos et al. (2020), equation 4. Zeros for a query that may
    attend to nothing.
    """
    mask = Mask.of(mask)
    queries, keys = (positive_features(at_least_float32(rows)) for rows in (queries, keys))
    products = queries @ keys.mT
    if not mask.hides_nothing:
        products = jnp.where(mask.table(queries.shape[-2], keys.shape[-2]), products, 0)
    return _divide(products, products.sum(axis=-1, keepdims=True))


@checked
def linear_step(
    state: Float[Array, "*batch d_k d_v_and_1"],
    query: Float[Array, "*batch d_k"],
    key: Float[Array, "*batch d_k"],
    value: Float[Array, "*batch d_v"],
) -> tuple[Float[Array, "*batch d_k d_v_and_1"], Float[Array, "*batch d_v"]]:
    r"""Read one more token and attend from it to all so far: linear attention as a recurrent network.

    Implements `eq-efficiency-recurrent`; Katharopoulos et al. (2020), equations 16 to 20, whose two sums are one matrix
    here, as each value ends in a 1. The `state` starts as zeros, and does not grow.
    """
    key, value = positive_features(key[..., None, :]), _with_one(value[..., None, :])
    state = state + key.mT @ value
    return state, _averaged(positive_features(query[..., None, :]) @ state)[..., 0, :]


@checked
def linear_attention(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    values: Float[Array, "*batch kv_seq d_v"],
    mask: Mask = EVERYTHING,
    *,
    block_size: Positive = 128,
) -> Float[Array, "*batch q_seq d_v"]:
    r"""Average the values by `linear_weights`, in time and memory that grow with the length, not with its square.

    Implements `eq-efficiency-linear`; Katharopoulos et al. (2020), equations 5 and 6. Without causal order there is one
    state for all queries. With it, `block_size` tokens at a time attend to each other by their products, and by the
    state to all that came before.

    Example:
        What `linear_weights` says, without them.

        >>> x, mask = jnp.eye(3), pf.attention.Mask(causal=True)
        >>> jnp.allclose(pf.attention.linear_attention(x, x, x, mask), pf.attention.linear_weights(x, x, mask) @ x)
        Array(True, dtype=bool)
    """
    _check_rule(mask)
    q_seq, dtype = queries.shape[-2], values.dtype
    mask.check(q_seq, keys.shape[-2], queries.shape[:-2])
    # Sums over a long text need more digits than 16 bits have.
    queries, keys = (positive_features(at_least_float32(rows)) for rows in (queries, keys))
    keys, values = (mask.without_unseen(rows, q_seq) for rows in (keys, at_least_float32(values)))
    values = _with_one(values)
    if not mask.causal:
        return _averaged(queries @ (keys.mT @ values)).astype(dtype)
    check_axes("keys", keys, "In causal order each query is a token of its own.", **{"*batch": None},
               kv_seq=q_seq, d_k=None)  # fmt: skip

    def step(state, block):
        q, k, v = block
        earlier = jnp.where(causal_mask(len_of_block), q @ k.mT, 0)
        return state + k.mT @ v, q @ state + earlier @ v

    len_of_block = min(block_size, queries.shape[-2])
    blocks = tuple(to_blocks(rows, len_of_block) for rows in (queries, keys, values))
    state = jnp.zeros((*keys.shape[:-2], keys.shape[-1], values.shape[-1]), keys.dtype)
    _, out = jax.lax.scan(jax.checkpoint(step), state, blocks)  # products are computed anew on the way back
    return _averaged(from_blocks(out, q_seq)).astype(dtype)


def attend_linearly_to_cache(
    queries: Float[Array, "*batch heads seq d_k"], cache: KeyValueCache, positions: Integer[Array, "*batch seq"]
) -> Float[Array, "*batch heads seq d_v"]:
    """Attend by `linear_weights` from queries to what a cache holds; arguments as for `attend_to_cache`."""
    group = queries.shape[-3] // cache.kv_heads
    keys, values = (jnp.repeat(rows, group, axis=-3) for rows in (cache.keys.mT, cache.values))
    return weighted_average(linear_weights(queries, keys, cache.mask(positions)[..., None, :, :]), values)


class LinearKernel(AttentionKernel):
    r"""Attention without scores, only sums, by `linear_attention`: another model than with the softmax.

    Implements `eq-efficiency-linear` for every head.
    """

    has_scores = False

    def attend(self, queries, keys, values, mask, scheme) -> Float[Array, "*batch heads q_seq d_v"]:
        """Average the values by the weights, without making a table of these."""
        _check_scheme(scheme)
        return linear_attention(queries, keys, values, mask)

    def weights(self, queries, keys, mask, scheme) -> Float[Array, "*batch heads q_seq kv_seq"]:
        """Return `linear_weights`, as a table."""
        _check_scheme(scheme)
        _check_rule(mask)
        return linear_weights(queries, keys, mask)

    def attend_to_cache(self, queries, cache, positions, scheme) -> Float[Array, "*batch heads seq d_v"]:
        """Attend by `linear_weights` to the slots of a cache that hold earlier positions."""
        _check_scheme(scheme)
        return attend_linearly_to_cache(queries, cache, positions)


def _check_rule(mask: Mask) -> None:
    """Raise `ValueError` for a table, of which linear attention never sees the entries."""
    if mask.allowed is not None:
        raise ValueError("mask is a table, which linear attention cannot use; expected a rule: Mask(is_token=…).")


def _check_scheme(scheme: PositionScheme) -> None:
    """Raise `ValueError` for a scheme that acts on scores."""
    if scheme.acts_on_scores or scheme.bias(jnp.arange(1), jnp.arange(1)) is not None:
        name = type(scheme).__name__
        raise ValueError(f"{name} acts on scores, and linear attention has none; expected learned positions.")


def _with_one(values: Float[Array, "*batch kv_seq d_v"]) -> Float[Array, "*batch kv_seq d_v_and_1"]:
    """Values with a 1 at the end, so that a sum of weighted values carries the sum of the weights."""
    return jnp.concatenate([values, jnp.ones_like(values[..., :1])], axis=-1)


def _averaged(sums: Float[Array, "*batch q_seq d_v_and_1"]) -> Float[Array, "*batch q_seq d_v"]:
    """Weighted values divided by the sum of the weights, which stands behind them."""
    return _divide(sums[..., :-1], sums[..., -1:])


def _divide(sums: Float[Array, "*batch rows d"], total: Float[Array, "*batch rows 1"]) -> Float[Array, "*batch rows d"]:
    """Quotients; zeros where there is nothing to attend to."""
    return sums / jnp.where(total == 0, 1, total)
