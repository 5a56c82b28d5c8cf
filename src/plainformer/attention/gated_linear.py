"""Linear attention that forgets: a factor per token, and its dual form (chapter on relations)."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.efficiency import from_blocks, to_blocks
from plainformer.attention.mask import Mask
from plainformer.attention.multi_head import IDENTITY, check_width, merge_heads, split_heads
from plainformer.attention.self_attention import at_least_float32, causal_mask
from plainformer.checks import Positive, check_axes, check_each, checked
from plainformer.positions.positions import NO_POSITIONS, PositionScheme, rotate_by
from plainformer.tokens.tokens import Linear


@checked
def gated_linear_step(
    state: Float[Array, "*batch d_k d_v"],
    query: Float[Array, "*batch d_k"],
    key: Float[Array, "*batch d_k"],
    value: Float[Array, "*batch d_v"],
    log_factor: Float[Array, "*batch"],
) -> tuple[Float[Array, "*batch d_k d_v"], Float[Array, "*batch d_v"]]:
    r"""Shrink the state by the token's factor, write the token into it, and read it with the query.

    Implements `eq-relations-gated`; Katharopoulos et al. (2020) without factors and with a division by a sum; Sun et
    al. (2023) with one fixed factor for each head; Yang et al. (2024) with one for each token and row of the state; Dao
    and Gu (2024) with one for each token and head, as here.

    Args:
        state: what is kept of the tokens before; zeros at first.
        query, key, value: of this token.
        log_factor: the logarithm of the factor, at most 0.

    Returns:
        The state after the token, and what the token reads.
    """
    state = jnp.exp(log_factor)[..., None, None] * state + key[..., :, None] * value[..., None, :]
    return state, (query[..., None, :] @ state)[..., 0, :]


@checked
def gated_linear_weights(
    queries: Float[Array, "*batch seq d_k"],
    keys: Float[Array, "*batch seq d_k"],
    log_factors: Float[Array, "*batch seq"],
) -> Float[Array, "*batch seq seq"]:
    r"""Return the dual form's weights: products of queries and keys, times the factors of the tokens between them.

    Implements `eq-relations-gated-dual`; Dao and Gu (2024), who call it the state-space duality. The product of the
    factors of tokens m + 1 to n is the exponential of a difference of running sums, which never grows beyond 1.
    """
    sums = _running_sums(log_factors)
    between = sums[..., :, None] - sums[..., None, :]
    return jnp.exp(jnp.where(causal_mask(keys.shape[-2]), between, -jnp.inf)) * (queries @ keys.mT)


@checked
def gated_linear_attention(
    queries: Float[Array, "*batch seq d_k"],
    keys: Float[Array, "*batch seq d_k"],
    values: Float[Array, "*batch seq d_v"],
    log_factors: Float[Array, "*batch seq"],
    state: Float[Array, "*batch d_k d_v"] | None = None,
    *,
    block_size: Positive = 64,
) -> tuple[Float[Array, "*batch seq d_v"], Float[Array, "*batch d_k d_v"]]:
    r"""Sum the values by `gated_linear_weights`, in time and memory that grow with the length, not with its square.

    Implements `eq-relations-gated`, as Sun et al. (2023) and Yang et al. (2024) train it: tokens of a block of
    `block_size` reach each other by the dual form, and earlier ones by the state.

    Args:
        queries, keys, values: a row per token.
        log_factors: as for `gated_linear_step`, one per token.
        state: what is kept of the tokens before; `None` for nothing.
        block_size: how many tokens the dual form is taken of at a time.

    Returns:
        What each token reads, and the state after the last one.

    Example:
        With factors of 1 nothing is forgotten, and values add up.

        >>> ones = jnp.ones((3, 1))
        >>> out, state = pf.attention.gated_linear_attention(ones, ones, ones, jnp.zeros(3))
        >>> print(out[:, 0], state)
        [1. 2. 3.] [[3.]]
    """
    seq, size, dtype = queries.shape[-2], min(block_size, queries.shape[-2]), values.dtype
    # Sums over a long text need more digits than 16 bits have.
    queries, keys, values, log_factors = map(at_least_float32, (queries, keys, values, log_factors))
    if state is None:
        state = jnp.zeros((*keys.shape[:-2], keys.shape[-1], values.shape[-1]), values.dtype)

    def step(state, block):
        q, k, v, log_factor = block
        sums = _running_sums(log_factor[..., 0])[..., None]
        read = jnp.exp(sums) * (q @ state) + gated_linear_weights(q, k, log_factor[..., 0]) @ v
        kept = jnp.exp(sums[..., -1:, :] - sums)  # of each token, at the end of the block
        return jnp.exp(sums[..., -1:, :]) * state + (kept * k).mT @ v, read

    blocks = tuple(to_blocks(rows, size) for rows in (queries, keys, values, log_factors[..., None]))
    # What fills the last block has a factor of 1 and writes nothing.
    last, out = jax.lax.scan(step, at_least_float32(state), blocks)
    return from_blocks(out, seq).astype(dtype), last


class GatedLinearAttention(eqx.Module):
    r"""A layer in place of causal attention whose heads keep a state of fixed size, and forget as each token says.

    Implements `eq-relations-gated-layer`; Yang et al. (2024) and Sun et al. (2023) for the norm and the gate at the
    end; Dao and Gu (2024) for one factor per token and head.

    Args:
        d_model: width of a token, in and out.
        num_heads: number of heads, each with a state of its own.
        norm: what every head's row goes through, such as `RMSNorm(d_model // num_heads)`; nothing by default.
        key: random key for the matrices (Glorot normal).

    Differs from the papers:
        The factors start between ½ and 1 − 2⁻⁷, head by head, so that some heads forget at once and others late.

    Example:
        Tokens go in and come out, all at once, or one by one with a state.

        >>> layer = pf.attention.GatedLinearAttention(8, num_heads=2, key=jax.random.key(0))
        >>> layer(jnp.ones((3, 8))).shape, layer.start().shape
        ((3, 8), (2, 4, 4))
    """

    query: Linear
    key: Linear
    value: Linear
    factor: Linear
    gate: Linear
    output: Linear
    norm: Callable
    num_heads: int = eqx.field(static=True)

    @checked
    def __init__(self, d_model: Positive, num_heads: Positive, *, norm: Callable = IDENTITY, key: PRNGKeyArray):
        check_width(d_model, num_heads)
        keys = jax.random.split(key, 6)
        self.query, self.key, self.value, self.gate, self.output = (
            Linear(d_model, d_model, use_bias=False, key=each) for each in keys[:5]
        )
        factor = Linear(d_model, num_heads, key=keys[5])
        memory = jnp.linspace(1, 7, num_heads) * jnp.log(2.0)  # sigmoid(ln(e^m − 1)) = 1 − e^−m
        self.factor = eqx.tree_at(lambda part: part.bias, factor, jnp.log(jnp.expm1(memory)))
        self.norm, self.num_heads = norm, num_heads

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | Mask | None = None,
        *,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> Float[Array, "*batch seq d_model"]:
        """Read a text from its beginning; a `scheme` may turn queries and keys.

        Order is causal by construction: the only `mask` is `Mask(causal=True)`, or none.
        """
        mask = Mask.of(mask)
        if mask.is_token is not None or mask.allowed is not None:
            raise ValueError("mask hides single tokens; expected Mask(causal=True), since a state has read them all.")
        return self.extend(x, self.start(x.shape[:-2]), scheme=scheme)[0]

    def start(self, batch: tuple[int, ...] = ()) -> Float[Array, "*batch heads d_k d_v"]:
        """Return the states before the first token: zeros; `batch` holds the sizes of the axes in front."""
        if not isinstance(batch, tuple):
            raise TypeError(f"batch is {batch!r}; expected the sizes of the axes in front, as (3,) for three texts.")
        check_each(Positive, **{f"batch[{axis}]": size for axis, size in enumerate(batch)})
        width = self.query.weight.shape[1] // self.num_heads
        return jnp.zeros((*batch, self.num_heads, width, width))

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        state: Float[Array, "*batch heads d_k d_v"],
        positions: Integer[Array, "*batch seq"] | None = None,
        *,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], Float[Array, "*batch heads d_k d_v"]]:
        """Read further tokens, from the states that `start` or an earlier call returned.

        `positions` say where they stand in the text, for a `scheme`; `None` counts from 0. Returns a row for each
        token, and the states to go on from.
        """
        check_axes("state", state, "Take it from start(…).", **{"*batch": x.shape[:-2]}, heads=self.num_heads,
                   d_k=None, d_v=None)  # fmt: skip
        places = None if positions is None else positions[..., None, :]
        queries, keys, values = (split_heads(part(x), self.num_heads) for part in (self.query, self.key, self.value))
        queries, keys = rotate_by(scheme, queries, places), rotate_by(scheme, keys, places)
        log_factors = jax.nn.log_sigmoid(self.factor(x)).mT
        heads, state = gated_linear_attention(queries, keys, values, log_factors, state)
        return self.output(jax.nn.silu(self.gate(x)) * merge_heads(self.norm(heads))), state


def _running_sums(numbers: Float[Array, "*batch seq"]) -> Float[Array, "*batch seq"]:
    """The sum of each number and all before it, by a product: on a CPU, JAX's `cumsum` and its gradient take longer."""
    return numbers @ causal_mask(numbers.shape[-1]).T.astype(numbers.dtype)
