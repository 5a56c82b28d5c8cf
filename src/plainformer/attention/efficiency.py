"""Attention with the same result that costs less: block by block, without those that are hidden."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from plainformer.attention.kernels import AttentionKernel, Softmax
from plainformer.attention.mask import Mask
from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import Finite, Positive, check_each, checked
from plainformer.positions.positions import NO_POSITIONS, PositionScheme, bias_of, near_keys


class _Rows(NamedTuple):
    """What the online softmax knows of some queries: weighted values, largest score and total, all so far."""

    out: Float[Array, "*batch q_seq d_v"]
    largest: Float[Array, "*batch q_seq 1"]
    total: Float[Array, "*batch q_seq 1"]


def start_rows(
    queries: Float[Array, "*batch q_seq d_k"], d_v: int, sinks: Float[Array, "heads"] | None = None
) -> _Rows:
    """What is known before the first key: nothing, or the logit of the head's sink, which has no value."""
    zeros = jnp.zeros_like(queries[..., :1])
    out = jnp.zeros((*queries.shape[:-1], d_v), queries.dtype)
    if sinks is not None:
        return _Rows(out, zeros + sinks[:, None, None].astype(zeros.dtype), zeros + 1)
    # Not minus infinity: if all is hidden from a query, -inf - (-inf) would be NaN.
    return _Rows(out, zeros + jnp.finfo(queries.dtype).min, zeros)


@checked
def online_softmax_step(
    rows: _Rows, scores: Float[Array, "*batch q_seq kv_seq"], values: Float[Array, "*batch kv_seq d_v"]
) -> _Rows:
    r"""Take further keys and values into a weighted average that is not divided by its total yet.

    Implements `eq-efficiency-online`; Milakov and Gimelshein (2018), algorithm 3; Dao et al. (2022), section 3.1. What
    is there already was measured against the largest score so far: if a larger one comes, it shrinks.
    """
    largest = jnp.maximum(rows.largest, scores.max(axis=-1, keepdims=True))
    shrink, weights = jnp.exp(rows.largest - largest), jnp.exp(scores - largest)
    total = shrink * rows.total + weights.sum(axis=-1, keepdims=True)
    return _Rows(shrink * rows.out + weights @ values, largest, total)


@checked
def blockwise_attention(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    values: Float[Array, "*batch kv_seq d_v"],
    mask: Bool[Array, "*#batch q_seq kv_seq"] | Mask | None = None,
    *,
    scale: Finite | None = None,
    scheme: PositionScheme = NO_POSITIONS,
    sinks: Float[Array, "heads"] | None = None,
    block_size: Positive = 512,
) -> Float[Array, "*batch q_seq d_v"]:
    r"""Return what `attend` returns, without ever holding more than a block of the scores.

    Implements `eq-efficiency-blockwise`; Rabe and Staats (2021); Dao et al. (2022), algorithms 1 and 4. The memory that
    it takes grows with the length, not with its square, backward, too, where the scores are computed anew. Blocks of
    which every place is hidden are left out.

    Arguments as for `attend`, but for those below.

    Args:
        mask: a table as for `attend`, or a rule.
        scheme: a position scheme, whose bias is added to the scores, a block at a time, in place of a `bias`.
        sinks: a logit for each head, as for `softmax_with_sink`.
        block_size: how many queries and how many keys a block has: the larger, the more memory, and up to about 512,
            the faster.

    Example:
        Three tokens, in blocks of two.

        >>> x = jnp.eye(3)
        >>> jnp.allclose(pf.attention.blockwise_attention(x, x, x, block_size=2), pf.attend(x, x, x))
        Array(True, dtype=bool)
    """
    check_each(Positive, q_seq=queries.shape[-2], kv_seq=keys.shape[-2], d_k=queries.shape[-1])
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    mask = Mask.of(mask)
    q_seq, kv_seq = queries.shape[-2], keys.shape[-2]
    mask.check(q_seq, kv_seq, queries.shape[:-2])
    keys, values = mask.without_unseen(keys, q_seq), mask.without_unseen(values, q_seq)
    wide = [at_least_float32(rows) for rows in (queries, keys, values)]
    wide[0] = wide[0] * jnp.asarray(scale, wide[0].dtype)
    learned, fixed = eqx.partition(scheme, eqx.is_inexact_array)
    blocks = [to_blocks(rows, min(block_size, rows.shape[-2])) for rows in wide]
    out = _blockwise((*blocks, learned, sinks), fixed, mask, keys.shape[-2])
    return from_blocks(out, queries.shape[-2]).astype(values.dtype)


@eqx.filter_custom_vjp
def _blockwise(differentiable, fixed, mask, kv_seq):
    return _forward(differentiable, fixed, mask, kv_seq)[0]


@_blockwise.def_fwd
def _keep(perturbed, differentiable, fixed, mask, kv_seq):
    # All that is kept beside the result is one number per query: the logarithm of its total.
    out, log_total = _forward(differentiable, fixed, mask, kv_seq)
    return out, (out, log_total)


def _forward(differentiable, fixed, mask, kv_seq):
    """Every block of queries meets all blocks of keys, one after the other, and then divides by its totals."""
    queries, keys, values, learned, sinks = differentiable
    scheme = eqx.combine(learned, fixed)

    def of_queries(block):
        q_positions, q = block

        def step(rows, block):
            kv_positions, k, v = block
            seen = _seen(mask, scheme, q_positions, kv_positions, kv_seq)

            def visit(rows):
                return online_softmax_step(rows, _scores(q, k, scheme, seen, q_positions, kv_positions), v)

            return jax.lax.cond(seen.any(), visit, lambda rows: rows, rows), None

        rows, _ = jax.lax.scan(step, start_rows(q, values.shape[-1], sinks), (_positions(keys), keys, values))
        total = jnp.where(rows.total == 0, 1, rows.total)
        return rows.out / total, rows.largest + jnp.log(total)

    return jax.lax.map(of_queries, (_positions(queries), queries))


@_blockwise.def_bwd
def _backward(kept, d_out, perturbed, differentiable, fixed, mask, kv_seq):
    """Every block of keys meets all blocks of queries, and the weights are computed anew from scores and totals."""
    (out, log_total), (queries, keys, values, learned, sinks) = kept, differentiable
    mean_slopes = (d_out * out).sum(axis=-1, keepdims=True)

    def of_keys(carry, block):
        d_queries, d_learned = carry
        kv_positions, k, v = block

        def step(carry, block):
            q_positions, q, d_q, d_o, log_t, mean_slope = block
            scheme = eqx.combine(learned, fixed)
            seen = _seen(mask, scheme, q_positions, kv_positions, kv_seq)

            def visit(carry, d_q):
                def scores_of(q, k, learned):
                    return _scores(q, k, eqx.combine(learned, fixed), seen, q_positions, kv_positions)

                scores, backward = jax.vjp(scores_of, q, k, learned)
                weights = jnp.where(jnp.isneginf(scores), 0, jnp.exp(scores - log_t))
                d_scores = weights * (d_o @ v.mT - mean_slope)
                d_q_more, *d_more = backward(d_scores)
                return jax.tree.map(jnp.add, carry, (*d_more, weights.mT @ d_o)), d_q + d_q_more

            return jax.lax.cond(seen.any(), visit, lambda *unchanged: unchanged, carry, d_q)

        start = (jnp.zeros_like(k), d_learned, jnp.zeros_like(v))
        blocks = (_positions(queries), queries, d_queries, d_out, log_total, mean_slopes)
        (d_k, d_learned, d_v), d_queries = jax.lax.scan(step, start, blocks)
        return (d_queries, d_learned), (d_k, d_v)

    start = jax.tree.map(jnp.zeros_like, (queries, learned))
    (d_queries, d_learned), d_rows = jax.lax.scan(of_keys, start, (_positions(keys), keys, values))
    return d_queries, *d_rows, d_learned, _sink_slopes(sinks, log_total, mean_slopes)


def _sink_slopes(sinks, log_total, mean_slopes) -> Float[Array, "heads"] | None:
    """The gradients of the sinks, which have a weight and no value, summed over blocks, texts and queries."""
    if sinks is None:
        return None
    slopes = -jnp.exp(sinks[:, None, None] - log_total) * mean_slopes
    return slopes.sum(axis=(*range(slopes.ndim - 3), -2, -1)).astype(sinks.dtype)


def _scores(q, k, scheme, seen, q_positions, kv_positions) -> Float[Array, "*batch q_seq kv_seq"]:
    """A block of the scores, minus infinity where a key is hidden."""
    scores, bias = q @ k.mT, scheme.bias(q_positions, kv_positions)
    return jnp.where(seen, scores if bias is None else scores + bias.astype(scores.dtype), -jnp.inf)


def _seen(mask, scheme, q_positions, kv_positions, kv_seq) -> Bool[Array, "*batch q_seq kv_seq"]:
    """A block of the mask. Keys that only fill the last block are hidden."""
    seen, near = mask(q_positions, kv_positions) & (kv_positions < kv_seq), near_keys(scheme, q_positions, kv_positions)
    return seen if near is None else seen & near


def _positions(blocks: Float[Array, "blocks *batch size d"]) -> Integer[Array, "blocks size"]:
    """Where the rows of each block stand."""
    return jnp.arange(blocks.shape[0] * blocks.shape[-2]).reshape(blocks.shape[0], -1)


def to_blocks(rows: Float[Array, "*batch seq d"], size: int) -> Float[Array, "blocks *batch size d"]:
    """Cut rows into blocks, one after the other on a new first axis; zeros fill the last one."""
    *batch, seq, width = rows.shape
    rows = jnp.pad(rows, [(0, 0)] * len(batch) + [(0, -seq % size), (0, 0)])
    return jnp.moveaxis(rows.reshape(*batch, -1, size, width), -3, 0)


def from_blocks(blocks: Float[Array, "blocks *batch size d"], seq: int) -> Float[Array, "*batch seq d"]:
    """The inverse of `to_blocks`, for `seq` rows."""
    rows = jnp.moveaxis(blocks, 0, -3)
    return rows.reshape(*rows.shape[:-3], -1, rows.shape[-1])[..., :seq, :]


class Blockwise(AttentionKernel):
    r"""Softmax attention, a block of the scores at a time: the same result in less memory, by `blockwise_attention`.

    Args:
        block_size, sinks: as for `blockwise_attention`.
    """

    has_scores = True
    block_size: int = eqx.field(static=True)
    sinks: Float[Array, "heads"] | None

    @checked
    def __init__(self, block_size: Positive = 512, sinks: Float[Array, "heads"] | None = None):
        self.block_size, self.sinks = block_size, sinks

    def attend(self, queries, keys, values, mask, scheme) -> Float[Array, "*batch heads q_seq d_v"]:
        """Average the values by the weights, block by block."""
        bias_of(scheme, jnp.arange(1), jnp.arange(1), queries.shape[-3])  # raises if it is made for other heads
        options = {"scheme": scheme, "sinks": self.sinks, "block_size": self.block_size}
        return blockwise_attention(queries, keys, values, mask, **options)

    def weights(self, queries, keys, mask, scheme) -> Float[Array, "*batch heads q_seq kv_seq"]:
        """Return the table of the weights, as `Softmax` does."""
        return Softmax(sinks=self.sinks).weights(queries, keys, mask, scheme)

    def attend_to_cache(self, queries, cache, positions, scheme) -> Float[Array, "*batch heads seq d_v"]:
        """Attend to a cache as `Softmax` does: its scores are a few rows."""
        return Softmax(sinks=self.sinks).attend_to_cache(queries, cache, positions, scheme)
