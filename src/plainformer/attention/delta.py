"""The delta rule: a state that a token corrects at its key (chapter on modern models)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax.linalg import triangular_solve
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.efficiency import from_blocks, to_blocks
from plainformer.attention.gated_linear import gated_linear_attention, gated_linear_weights
from plainformer.attention.mask import Mask
from plainformer.attention.multi_head import IDENTITY, check_width, merge_heads, split_heads
from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import Natural, Positive, check_axes, check_each, checked
from plainformer.positions.positions import NO_POSITIONS, PositionScheme
from plainformer.seeing import is_looking, look, see
from plainformer.tokens.tokens import Linear

BLOCK_SIZE = 32  # tokens, of which the triangular system is solved at once


@checked
def delta_step(
    state: Float[Array, "*batch d_k d_v"],
    query: Float[Array, "*batch d_k"],
    key: Float[Array, "*batch d_k"],
    value: Float[Array, "*batch d_v"],
    beta: Float[Array, "*batch"],
    log_factor: Float[Array, "*batch"],
) -> tuple[Float[Array, "*batch d_k d_v"], Float[Array, "*batch d_v"]]:
    r"""Shrink the state, replace what it says at the token's key by the token's value, and read it with the query.

    Implements `eq-modern-delta`; Schlag et al. (2021), section 4.2, where nothing shrinks; Yang et al. (2025), equation
    10. With a key of length 1 and a `beta` of 1, the state says exactly `value` at `key` afterwards.

    Args:
        state: what is kept of the tokens before; zeros at first.
        query, key, value: of this token; the key of length 1.
        beta: how much of what the state says at the key is replaced, from 0, nothing, to 1, all of it.
        log_factor: the logarithm of the factor by which the state shrinks first, at most 0.

    Returns:
        The state after the token, and what the token reads.
    """
    state = jnp.exp(log_factor)[..., None, None] * state
    said = (key[..., None, :] @ state)[..., 0, :]
    state = state + key[..., :, None] * (beta[..., None] * (value - said))[..., None, :]
    return state, (query[..., None, :] @ state)[..., 0, :]


@checked
def delta_weights(
    queries: Float[Array, "*batch seq d_k"],
    keys: Float[Array, "*batch seq d_k"],
    betas: Float[Array, "*batch seq"],
    log_factors: Float[Array, "*batch seq"],
) -> Float[Array, "*batch seq seq"]:
    r"""Return how much of each value every token reads: the delta rule as attention without a softmax.

    Implements `eq-modern-delta-block` for a whole text; Yang et al. (2024), section 3, and Yang et al. (2025), section
    3.3. Weights of gated linear attention, times the inverse of the triangular matrix by which corrections hang
    together.
    """
    betas = betas[..., None]
    corrections = triangular_solve(
        betas * gated_linear_weights(keys, keys, log_factors),
        betas * jnp.eye(keys.shape[-2], dtype=keys.dtype),
        left_side=True,
        lower=True,
        unit_diagonal=True,
    )
    return gated_linear_weights(queries, keys, log_factors) @ corrections


@checked
def delta_rule(
    queries: Float[Array, "*batch seq d_k"],
    keys: Float[Array, "*batch seq d_k"],
    values: Float[Array, "*batch seq d_v"],
    betas: Float[Array, "*batch seq"],
    log_factors: Float[Array, "*batch seq"],
    state: Float[Array, "*batch d_k d_v"] | None = None,
    *,
    block_size: Positive = BLOCK_SIZE,
) -> tuple[Float[Array, "*batch seq d_v"], Float[Array, "*batch d_k d_v"]]:
    r"""Take `delta_step` for every token, a block at a time, in time that grows with the length.

    Implements `eq-modern-delta-block`; Yang et al. (2024), section 3; Yang et al. (2025), section 3.3. What the
    tokens of a block write stands in a triangular system of equations; with that for values, all else is gated linear
    attention.

    Args:
        queries, keys, values: a row per token; keys of length 1.
        betas, log_factors: as for `delta_step`, one per token.
        state: what is kept of the tokens before; `None` for nothing.
        block_size: how many tokens are taken at a time; of twice as many, a CPU solves the system more slowly.

    Returns:
        What each token reads, and the state after the last one.

    Example:
        The same key twice: the second value replaces the first.

        >>> keys, values = jnp.ones((2, 1)), jnp.asarray([[3.0], [5.0]])
        >>> out, state = pf.attention.delta_rule(keys, keys, values, jnp.ones(2), jnp.zeros(2))
        >>> print(out[:, 0], state)
        [3. 5.] [[5.]]
    """
    seq, size = queries.shape[-2], min(block_size, queries.shape[-2])
    if state is None:
        state = jnp.zeros((*keys.shape[:-2], keys.shape[-1], values.shape[-1]), values.dtype)

    def step(state, block):
        q, k, v, beta, log_factor = block
        kept = jnp.exp(jnp.cumsum(log_factor, axis=-2))
        together, apart = gated_linear_weights(k, k, log_factor[..., 0]), v - kept * (k @ state)
        written = triangular_solve(beta * together, beta * apart, left_side=True, lower=True, unit_diagonal=True)
        read, state = gated_linear_attention(q, k, written, log_factor[..., 0], state, block_size=size)
        return state, read

    rows = (queries, keys, values, betas[..., None], log_factors[..., None])
    last, out = jax.lax.scan(step, state, tuple(to_blocks(each, size) for each in rows))
    return from_blocks(out, seq), last  # what fills the last block has a beta of 0 and a factor of 1


@checked
def short_convolution(
    rows: Float[Array, "*batch seq d"],
    kernel: Float[Array, "k_seq d"],
    before: Float[Array, "*batch k_seq_less_1 d"],
) -> Float[Array, "*batch seq d"]:
    r"""Replace each row by a sum of itself and those just before it, with weights of its own for each column.

    Implements the mixing in `eq-modern-delta-layer`; Yang et al. (2025), section 3.4.

    Args:
        rows: of the tokens.
        kernel: the weights, those of the row itself last.
        before: the rows before the first, one fewer than the kernel has; zeros at the beginning of a text.
    """
    check_axes("before", before, "One row fewer than the kernel.", **{"*batch": rows.shape[:-2]},
               k_seq_less_1=len(kernel) - 1, d=rows.shape[-1])  # fmt: skip
    rows, seq = jnp.concatenate([before, rows], axis=-2), rows.shape[-2]
    return sum(weights * rows[..., first : first + seq, :] for first, weights in enumerate(kernel))


class DeltaCache(eqx.Module):
    r"""What a `GatedDeltaNet` keeps of the tokens read so far: as much after a thousand tokens as after one.

    In place of a `KeyValueCache` it is a part of a model's cache that never fills up. Nothing can be taken out of it.

    Args:
        num_heads, d_k, d_v: the heads of the layer, width of a key and of a value.
        num_rows: how many rows its short convolution looks back.
        batch: the axes in front, `(3,)` for three texts that are read side by side.
        dtype: of all numbers; `None` for JAX's default, float32.
    """

    state: Float[Array, "*batch heads d_k d_v"]
    rows: Float[Array, "*batch num_rows columns"]
    positions: Int[Array, "*batch 1"]

    @checked
    def __init__(
        self,
        num_heads: Positive,
        d_k: Positive,
        d_v: Positive,
        num_rows: Natural,
        *,
        batch: tuple[int, ...] = (),
        dtype=None,
    ):
        if not isinstance(batch, tuple):
            raise TypeError(f"batch is {batch!r}; expected the sizes of the axes in front, as (3,) for three texts.")
        check_each(Positive, **{f"batch[{axis}]": size for axis, size in enumerate(batch)})
        self.state = jnp.zeros((*batch, num_heads, d_k, d_v), dtype)
        self.rows = jnp.zeros((*batch, num_rows, num_heads * (2 * d_k + d_v)), dtype)
        self.positions = jnp.full((*batch, 1), -1, jnp.int32)

    @property
    def batch(self) -> tuple[int, ...]:
        """The axes in front, of texts."""
        return self.positions.shape[:-1]


CachePart = KeyValueCache | DeltaCache


class GatedDeltaNet(eqx.Module):
    r"""A layer in place of causal attention whose heads keep a state of fixed size and correct it at each token's key.

    Implements `eq-modern-delta-layer`; Yang et al. (2025), section 3.4, as in Qwen3-Next. It knows the order of tokens
    by itself, and lets no position scheme turn its queries and keys.

    Args:
        d_model: width of a token, in and out.
        num_heads: number of heads, each with a state of its own.
        d_k, d_v: width of a key and of a value in one head; `None` for `d_model / num_heads`.
        num_mixed: how many rows the short convolution mixes, the token's own among them.
        norm: what every head's row goes through, such as `RMSNorm(d_v)`; nothing by default.
        key: random key for the matrices (Glorot normal).

    Differs from the paper:
        The factors start between ½ and 1 − 2⁻⁷, head by head, as in `GatedLinearAttention`.

    Example:
        Tokens go in and come out, all at once, or one by one with a cache that does not grow.

        >>> layer = pf.attention.GatedDeltaNet(8, num_heads=2, key=jax.random.key(0))
        >>> layer(jnp.ones((3, 8))).shape, layer.make_cache(1000).state.shape
        ((3, 8), (2, 4, 4))
    """

    query: Linear
    key: Linear
    value: Linear
    kernel: Float[Array, "num_mixed columns"]
    beta: Linear
    factor: Linear
    log_rate: Float[Array, " heads"]
    gate: Linear
    output: Linear
    norm: Any
    num_heads: int = eqx.field(static=True)

    @checked
    def __init__(
        self,
        d_model: Positive,
        num_heads: Positive,
        *,
        d_k: Positive | None = None,
        d_v: Positive | None = None,
        num_mixed: Positive = 4,
        norm: Any = IDENTITY,
        key: PRNGKeyArray,
    ):
        if d_k is None or d_v is None:
            check_width(d_model, num_heads, "Choose other sizes, or give d_k and d_v yourself.")
        d_k, d_v = (d_model // num_heads if width is None else width for width in (d_k, d_v))
        keys = jax.random.split(key, 8)
        widths = (num_heads * d_k, num_heads * d_k, num_heads * d_v, num_heads * d_v, num_heads)
        maps = [Linear(d_model, width, use_bias=False, key=each) for width, each in zip(widths, keys[:5], strict=True)]
        self.query, self.key, self.value, self.gate, self.beta = maps
        self.output = Linear(num_heads * d_v, d_model, use_bias=False, key=keys[5])
        half = num_mixed**-0.5
        self.kernel = jax.random.uniform(keys[6], (num_mixed, sum(widths[:3])), minval=-half, maxval=half)
        factor = Linear(d_model, num_heads, key=keys[7])
        memory = jnp.linspace(1, 7, num_heads) * jnp.log(2.0)  # 1 − sigmoid(−ln(e^m − 1)) = 1 − e^−m
        self.factor = eqx.tree_at(lambda part: part.bias, factor, -jnp.log(jnp.expm1(memory)))
        self.log_rate, self.norm, self.num_heads = jnp.zeros(num_heads), norm, num_heads

    @property
    def d_model(self) -> int:
        """Width of a token."""
        return self.query.weight.shape[0]

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | Mask | None = None,
        *,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> Float[Array, "*batch seq d_model"]:
        """Read a text from its beginning; order is causal by construction.

        The `mask` may say which tokens are padding, at one end of a text; `None` is `Mask(causal=True)`. The `scheme`
        of a stack of blocks may be any: this layer does not ask it.
        """
        mask = Mask(causal=True) if mask is None else Mask.of(mask)
        if mask.allowed is not None:
            raise ValueError("mask is a table, and a state is read onwards; expected Mask(causal=True), or None.")
        if not mask.causal:
            raise ValueError("mask lets tokens see later ones; expected Mask(causal=True), as a state is read onwards.")
        mask.check(x.shape[-2], x.shape[-2], x.shape[:-2])
        cache = self.make_cache(x.shape[-2], batch=x.shape[:-2])
        is_token = True if mask.is_token is None else jnp.broadcast_to(mask.is_token, x.shape[:-1])
        return self._read(x, cache, is_token)[0]

    def attention_weights(self, x, mask=None, **options) -> Float[Array, "*batch heads seq seq"]:
        """Return how much of each value every token reads, in every head, for the same arguments as a call."""
        return look(self, x, mask, **options)[1]["weights"]

    @checked
    def make_cache(self, capacity: Positive, *, batch: tuple[int, ...] = (), **options) -> DeltaCache:
        """Make the cache of a text before its first token; it takes as much memory for any `capacity`.

        The other `options` of a `KeyValueCache` say nothing of a state.
        """
        d_k, d_v = (part.weight.shape[1] // self.num_heads for part in (self.key, self.value))
        dtype = at_least_float32(self.log_rate).dtype
        return DeltaCache(self.num_heads, d_k, d_v, len(self.kernel) - 1, batch=batch, dtype=dtype)

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        cache: DeltaCache,
        positions: Integer[Array, "*batch seq"],
        *,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], DeltaCache]:
        """Read further tokens, from the cache that `make_cache` or an earlier call returned.

        `positions` say where they stand in the text, -1 for padding, which stands before it.
        """
        hint = f"The cache is of another layer or of other texts: make it by make_cache(…, batch={x.shape[:-2]})."
        check_axes("cache.state", cache.state, hint, **{"*batch": x.shape[:-2]}, heads=self.num_heads, d_k=None,
                   d_v=None)  # fmt: skip
        last = jnp.maximum(cache.positions, positions.max(axis=-1, keepdims=True).astype(cache.positions.dtype))
        rows, cache = self._read(x, cache, positions >= 0)
        return rows, eqx.tree_at(lambda part: part.positions, cache, last)

    def _read(self, x, cache: DeltaCache, is_token) -> tuple[Float[Array, "*batch seq d_model"], DeltaCache]:
        """Read tokens behind those that the cache knows; padding is not read, and changes no state."""
        is_token = jnp.asarray(is_token)[..., None]
        mixed = jnp.concatenate([self.query(x), self.key(x), self.value(x)], axis=-1)
        mixed = at_least_float32(jnp.where(is_token, mixed, 0))
        rows = jnp.concatenate([cache.rows, mixed], axis=-2)[..., mixed.shape[-2] :, :]
        mixed = jax.nn.silu(short_convolution(mixed, at_least_float32(self.kernel), cache.rows))
        width = self.query.weight.shape[1]
        parts = mixed[..., :width], mixed[..., width : 2 * width], mixed[..., 2 * width :]
        queries, keys, values = (split_heads(part, self.num_heads) for part in parts)
        queries, keys = see("queries", _unit(queries) * queries.shape[-1] ** -0.5), see("keys", _unit(keys))
        betas = jnp.where(is_token, jax.nn.sigmoid(at_least_float32(self.beta(x))), 0).mT
        rate = jnp.exp(at_least_float32(self.log_rate))
        log_factors = jnp.where(is_token, -rate * jax.nn.softplus(at_least_float32(self.factor(x))), 0).mT
        heads, state = delta_rule(queries, keys, see("values", values), betas, log_factors, cache.state)
        if is_looking():  # what stands in for the weights changes what is read of these tokens
            weights = delta_weights(queries, keys, betas, log_factors)
            heads = heads + (see("weights", weights) - weights) @ values
        heads = self.norm(see("heads", heads.astype(x.dtype)))
        out = self.output(see("gate", jax.nn.silu(self.gate(x))) * merge_heads(heads))
        return out, eqx.tree_at(lambda part: (part.state, part.rows), cache, (state, rows))


def _unit(rows: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """Each row at a length of 1; a row of zeros stays."""
    return rows * jax.lax.rsqrt((rows**2).sum(axis=-1, keepdims=True) + 1e-6)
