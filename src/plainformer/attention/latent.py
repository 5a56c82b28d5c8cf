"""Attention whose keys and values come of one short vector per token (chapter on modern models)."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache, cache_bias
from plainformer.attention.kernels import SOFTMAX, AttentionKernel
from plainformer.attention.mask import Mask
from plainformer.attention.multi_head import IDENTITY, glorot_heads, merge_heads, split_heads
from plainformer.attention.self_attention import at_least_float32, softmax
from plainformer.checks import Even, Positive, check_fields, checked, says_where
from plainformer.positions.positions import NO_POSITIONS, PositionScheme, rotate_by
from plainformer.seeing import look, see
from plainformer.tokens.tokens import Linear


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class LatentConfig:
    r"""The widths of latent attention; those of a head, `d_k` and `d_v`, stand in the `StackConfig`.

    Args:
        width: of the short vector of which the keys and values of all heads are made.
        rotary_width: how many columns of a key, the last ones, all heads share. Rotary positions turn these alone.
        query_width: of a short vector of which the queries are made; `None` for queries made of the token itself.

    Example:
        The attention of DeepSeek-V3, 128 heads of which a token keeps 512 + 64 numbers.

        >>> latent = pf.attention.LatentConfig(width=512, rotary_width=64, query_width=1536)
        >>> stack = pf.StackConfig(d_model=7168, num_heads=128, d_k=192, d_v=128, num_layers=1, latent=latent)
        >>> from plainformer.models.accounting import cache_bytes
        >>> cache_bytes(stack, num_tokens=1, bytes_per_number=1)
        576
    """

    width: Positive
    rotary_width: Even
    query_width: Positive | None = None

    def __post_init__(self):
        check_fields(self)


@checked
def latent_keys(
    latents: Float[Array, "*batch kv_seq width"],
    rotary_keys: Float[Array, "*batch kv_seq d_rotary"],
    key_up: Float[Array, "heads width d_content"],
) -> Float[Array, "*batch heads kv_seq d_k"]:
    r"""Make the keys of all heads: of each its own columns of the short vectors, then those that all heads share.

    Implements `eq-modern-latent-keys`; DeepSeek-AI (2024), section 2.1.3, equations 10, 15 and 17.

    Args:
        latents: one short vector per token.
        rotary_keys: one more per token, turned by its position.
        key_up: a matrix per head, from a short vector to the head's own columns of a key.
    """
    own = latent_values(latents, key_up)
    shared = jnp.broadcast_to(rotary_keys[..., None, :, :], (*own.shape[:-1], rotary_keys.shape[-1]))
    return jnp.concatenate([own, shared], axis=-1)


@checked
def latent_values(
    latents: Float[Array, "*batch kv_seq width"], value_up: Float[Array, "heads width d_v"]
) -> Float[Array, "*batch heads kv_seq d_v"]:
    r"""Make the values of all heads of the short vectors, by a matrix per head.

    Implements `eq-modern-latent-values`; DeepSeek-AI (2024), section 2.1.2, equation 11.
    """
    return latents[..., None, :, :] @ value_up


@checked
def absorbed_scores(
    queries: Float[Array, "*batch heads q_seq d_k"],
    latents: Float[Array, "*batch kv_seq width"],
    rotary_keys: Float[Array, "*batch kv_seq d_rotary"],
    key_up: Float[Array, "heads width d_content"],
) -> Float[Array, "*batch heads q_seq kv_seq"]:
    r"""Compare queries with the keys of `latent_keys`, without making these: each query goes to the short vectors.

    Implements `eq-modern-latent-absorbed`; DeepSeek-AI (2024), section 2.1.2. The scores are not scaled yet.
    """
    queries, latents, rotary_keys, key_up = map(at_least_float32, (queries, latents, rotary_keys, key_up))
    own, shared = jnp.split(queries, [key_up.shape[-1]], axis=-1)
    return _times_shared(own @ key_up.mT, latents.mT) + _times_shared(shared, rotary_keys.mT)


def _times_shared(
    rows: Float[Array, "*batch heads seq d_in"], matrix: Float[Array, "*batch d_in d_out"]
) -> Float[Array, "*batch heads seq d_out"]:
    """The product of every head's rows with a matrix that all heads of a text share: one tall product for each text."""
    *batch, heads, seq, width = rows.shape
    return (rows.reshape(*batch, heads * seq, width) @ matrix).reshape(*batch, heads, seq, -1)


class LatentAttention(eqx.Module):
    r"""Multi-head self-attention whose keys and values are made of one short vector per token.

    Implements `eq-modern-latent-keys` and `eq-modern-latent-values`; DeepSeek-AI (2024), section 2.1; and, with a
    cache, `eq-modern-latent-absorbed`. A cache holds of each token the short vector, as its `values`, and the columns
    of the key that all heads share, as its `keys`.

    Args:
        d_model: width of a token, in and out.
        num_heads: number of heads.
        latent: widths of the short vectors and of the shared columns.
        d_k, d_v: width of a key, its shared columns among them, and of a value in one head.
        use_bias: whether the maps to the short vectors, to the shared columns and to the output add a bias, which
            starts at zero.
        kernel: as for `MultiHeadAttention`: `Softmax()` or `Blockwise()`.
        latent_norm, query_norm: what the short vectors go through, of keys and values and of queries, such as
            `RMSNorm(width)`; nothing by default.
        key: random key for the weight matrices (Glorot normal).

    Example:
        Three tokens come in and go out; four heads, and the cache keeps 3 + 2 numbers of each token.

        >>> latent = pf.attention.LatentConfig(width=3, rotary_width=2)
        >>> layer = pf.attention.LatentAttention(8, num_heads=4, latent=latent, d_k=4, d_v=2, key=jax.random.key(0))
        >>> cache = layer.make_cache(capacity=9)
        >>> layer(jnp.ones((3, 8))).shape, cache.values.shape, cache.keys.shape
        ((3, 8), (1, 9, 3), (1, 2, 9))
    """

    query_down: Linear | eqx.nn.Identity
    query: Linear
    down: Linear
    rotary_key: Linear
    key: Linear
    value: Linear
    output: Linear
    query_norm: Callable
    latent_norm: Callable
    num_heads: int = eqx.field(static=True)
    kernel: AttentionKernel

    @checked
    def __init__(
        self,
        d_model: Positive,
        num_heads: Positive,
        *,
        latent: LatentConfig,
        d_k: Positive,
        d_v: Positive,
        use_bias: bool = False,
        kernel: AttentionKernel = SOFTMAX,
        latent_norm: Callable = IDENTITY,
        query_norm: Callable = IDENTITY,
        key: PRNGKeyArray,
    ):
        check_latent(latent, d_k, kernel)
        keys = jax.random.split(key, 7)
        short, width = latent.query_width, latent.width

        def to_heads(d_in, columns, key):
            return Linear(d_in, num_heads * columns, use_bias=False, initialiser=glorot_heads(num_heads), key=key)

        self.query_down = IDENTITY if short is None else Linear(d_model, short, use_bias=use_bias, key=keys[0])
        self.query = to_heads(d_model if short is None else short, d_k, keys[1])
        self.down = Linear(d_model, width, use_bias=use_bias, key=keys[2])
        self.rotary_key = Linear(d_model, latent.rotary_width, use_bias=use_bias, key=keys[3])
        self.key = to_heads(width, d_k - latent.rotary_width, keys[4])
        self.value = to_heads(width, d_v, keys[5])
        self.output = Linear(num_heads * d_v, d_model, use_bias=use_bias, key=keys[6])
        self.query_norm, self.latent_norm = query_norm, latent_norm
        self.num_heads, self.kernel = num_heads, kernel

    @property
    def d_model(self) -> int:
        """Width of a token."""
        return self.down.weight.shape[0]

    @property
    def _ups(self) -> tuple[Float[Array, "heads width d_content"], Float[Array, "heads width d_v"]]:
        """The matrices of the heads, from a short vector to a key's own columns and to a value."""
        return split_heads(self.key.weight, self.num_heads), split_heads(self.value.weight, self.num_heads)

    @property
    def _widths(self) -> tuple[int, int]:
        """Width of the columns of a key that all heads share, and of a short vector."""
        return self.rotary_key.weight.shape[1], self.down.weight.shape[1]

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | Mask | None = None,
        *,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> Float[Array, "*batch seq d_model"]:
        """Attend from every row of `x` to every row that the mask allows; arguments as for `MultiHeadAttention`.

        Of queries and keys, a position `scheme` turns the columns that all heads share.
        """
        mask, (key_up, value_up) = Mask.of(mask), self._ups
        mask.check(x.shape[-2], x.shape[-2], x.shape[:-2])
        latents, rotary_keys = self._kept(x, scheme)
        keys = see("keys", latent_keys(latents, rotary_keys, key_up))
        values = see("values", latent_values(latents, value_up))
        heads = self.kernel(self._queries(x, scheme), keys, values, mask.for_heads(), scheme)
        return self.output(merge_heads(heads))

    def attention_weights(self, x, mask=None, **options) -> Float[Array, "*batch heads seq seq"]:
        """Return the attention weights of every head, for the same arguments as a call."""
        return look(self, x, mask, **options)[1]["weights"]

    def _kept(self, x, scheme, positions=None):
        """What is kept of each token: its short vector, and the columns of its key that all heads share."""
        rotary_keys = rotate_by(scheme, self.rotary_key(x), positions)
        return see("latents", self.latent_norm(self.down(x))), see("rotary_keys", rotary_keys)

    def _queries(self, x, scheme, positions=None) -> Float[Array, "*batch heads seq d_k"]:
        """The queries of all heads, with the columns turned that meet the shared ones of a key."""
        queries = split_heads(self.query(self.query_norm(self.query_down(x))), self.num_heads)
        own, shared = jnp.split(queries, [queries.shape[-1] - self._widths[0]], axis=-1)
        return see("queries", jnp.concatenate([own, rotate_by(scheme, shared, positions)], axis=-1))

    def make_cache(self, capacity: int, **options) -> KeyValueCache:
        """Make an empty cache with room for `capacity` tokens; options as for `KeyValueCache`."""
        return KeyValueCache(1, capacity, *self._widths, dtype=self.down.weight.dtype, **options)

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        cache: KeyValueCache,
        positions: Integer[Array, "*batch seq"],
        *,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], KeyValueCache]:
        """Read further tokens as `MultiHeadAttention.extend` does, without ever making a key or a value of a head.

        Queries go to the short vectors, which are averaged, and only the averages go up to values.
        """
        cache.check(1, *self._widths, batch=x.shape[:-2])
        key_up, value_up = self._ups
        latents, rotary_keys = self._kept(x, scheme, positions)
        cache = cache.append(rotary_keys[..., None, :, :], latents[..., None, :, :], positions)
        queries, latents = self._queries(x, scheme, positions[..., None, :]), cache.values[..., 0, :, :]
        queries = at_least_float32(queries)
        queries = queries * jnp.asarray(queries.shape[-1] ** -0.5, queries.dtype)
        scores = absorbed_scores(queries, latents, cache.keys[..., 0, :, :].mT, key_up)
        scores = scores + cache_bias(cache, positions, scheme, self.num_heads).astype(scores.dtype)
        averages = _times_shared(see("weights", softmax(scores)), at_least_float32(latents))
        heads = see("heads", (averages @ at_least_float32(value_up)).astype(x.dtype))
        return self.output(merge_heads(heads)), cache


def check_latent(latent: LatentConfig, d_k: int, kernel: AttentionKernel) -> None:
    """Raise `ValueError` unless a key has columns of its own beside the shared ones, and scores."""
    if latent.rotary_width >= d_k:
        raise ValueError(
            f"latent.rotary_width={latent.rotary_width} of d_k={d_k} columns of a key are shared by all heads; "
            "expected fewer, so that each head has some of its own. Choose a larger d_k."
        )
    if not kernel.has_scores:
        raise ValueError("Linear attention keeps a state and no keys; expected another attention with latent.")
