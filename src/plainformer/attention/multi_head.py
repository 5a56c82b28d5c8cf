"""Several attention heads side by side: as a sum, as a concatenation, and as one layer."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Num, PRNGKeyArray

from plainformer.attention.kernels import SOFTMAX, AttentionKernel, KeyValueCache
from plainformer.attention.mask import Mask
from plainformer.attention.self_attention import attend
from plainformer.checks import Positive, check_each, checked
from plainformer.positions.positions import NO_POSITIONS, PositionScheme, rotate_by
from plainformer.seeing import look, see
from plainformer.tokens.tokens import Linear, glorot_normal

IDENTITY = eqx.nn.Identity()


@checked
def multi_head_concat(
    x: Float[Array, "*batch seq d_model"],
    query_weights: Float[Array, "heads d_model d_k"],
    key_weights: Float[Array, "heads d_model d_k"],
    value_weights: Float[Array, "heads d_model d_v"],
    output_weights: Float[Array, "heads d_v d_model"],
    mask: Bool[Array, "*#batch seq seq"] | None = None,
) -> Float[Array, "*batch seq d_model"]:
    r"""Multi-head self-attention as it is usually written: concatenate the heads, then mix them.

    Implements `eq-multi-head-concat`; Vaswani et al. (2017), section 3.2.2.

    Args:
        x: one vector per token.
        query_weights, key_weights, value_weights: a matrix of queries, of keys and of values per head.
        output_weights: the output matrix, cut into the rows that meet each head.
        mask: as for `attend`, the same for every head.
    """
    outputs = _head_outputs(x, query_weights, key_weights, value_weights, mask)
    return jnp.concatenate(outputs, axis=-1) @ jnp.concatenate(list(output_weights), axis=0)


@checked
def multi_head_sum(
    x: Float[Array, "*batch seq d_model"],
    query_weights: Float[Array, "heads d_model d_k"],
    key_weights: Float[Array, "heads d_model d_k"],
    value_weights: Float[Array, "heads d_model d_v"],
    output_weights: Float[Array, "heads d_v d_model"],
    mask: Bool[Array, "*#batch seq seq"] | None = None,
) -> Float[Array, "*batch seq d_model"]:
    r"""Multi-head self-attention as a sum: every head adds its own contribution to the output.

    Implements `eq-multi-head-sum`; Turner (2023), section 2.1, with his matrix for head h factored into a value and
    an output matrix; Elhage et al. (2021).

    Arguments as for `multi_head_concat`, whose result it equals up to rounding.
    """
    outputs = _head_outputs(x, query_weights, key_weights, value_weights, mask)
    return sum(output @ weight for output, weight in zip(outputs, output_weights, strict=True))


def _head_outputs(x, query_weights, key_weights, value_weights, mask) -> list[Float[Array, "*batch seq d_v"]]:
    """What each head alone returns."""
    check_each(Positive, heads=len(query_weights))
    per_head = zip(query_weights, key_weights, value_weights, strict=True)
    return [attend(x @ w_q, x @ w_k, x @ w_v, mask) for w_q, w_k, w_v in per_head]


@checked
def split_heads(x: Num[Array, "*batch seq width"], num_heads: Positive) -> Num[Array, "*batch heads seq d_head"]:
    r"""Cut each row into `num_heads` equal pieces and stack the pieces of each head into a matrix.

    Implements `eq-multi-head-split`; the columns of head h are those from h d_head to (h + 1) d_head, counted from 0.
    """
    if x.shape[-1] % num_heads:
        raise ValueError(f"x is {x.shape[-1]} wide, which {num_heads} heads cannot share equally; expected a multiple.")
    # Reshape, then swap: reshaping straight to (heads, seq, d_head) would cut across tokens.
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).swapaxes(-3, -2)


@checked
def merge_heads(heads: Num[Array, "*batch heads seq d_head"]) -> Num[Array, "*batch seq width"]:
    r"""Lay the heads' rows side by side again: the inverse of `split_heads`.

    Implements `eq-multi-head-merge`.
    """
    *batch, num_heads, seq, d_head = heads.shape
    return heads.swapaxes(-3, -2).reshape(*batch, seq, num_heads * d_head)


class MultiHeadAttention(eqx.Module):
    r"""Multi-head attention over the tokens themselves, or over a `context`.

    Implements `eq-multi-head-layer`; Vaswani et al. (2017), section 3.2.2. With fewer key and value heads than query
    heads it is grouped-query attention, `eq-efficiency-grouped`; Ainslie et al. (2023); with a single one,
    multi-query attention; Shazeer (2019).

    Args:
        d_model: width of a token, in and out.
        num_heads: number of query heads.
        num_kv_heads: number of key and value heads, a divisor of `num_heads`; `None` for as many.
        d_k, d_v: width of a key and of a value in one head; `None` for `d_model / num_heads`.
        use_bias: whether each of the four maps adds a bias, which starts at zero.
        kernel: what makes the heads of queries, keys and values: `Softmax()`, or `Blockwise()`, with the
            same result, or `LinearKernel()`.
        query_norm, key_norm: what every query and every key goes through before positions turn them, such as
            `RMSNorm(d_k)`, as in Qwen3 (Yang et al., 2025, section 2); nothing by default.
        key: random key for the weight matrices (Glorot normal).

    Differs from the paper:
        Only in layout: the matrices of all heads stand side by side in one, so that one product makes the queries of
        all of them.

    Example:
        Three tokens come in and go out, and each of the two heads looks at them in its own way.

        >>> attention = pf.MultiHeadAttention(8, num_heads=2, key=jax.random.key(0))
        >>> x, mask = jnp.ones((3, 8)), pf.causal_mask(3)
        >>> attention(x, mask).shape, attention.attention_weights(x, mask).shape
        ((3, 8), (2, 3, 3))
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    query_norm: Callable
    key_norm: Callable
    num_heads: int = eqx.field(static=True)
    num_kv_heads: int = eqx.field(static=True)
    kernel: AttentionKernel

    @checked
    def __init__(
        self,
        d_model: Positive,
        num_heads: Positive,
        *,
        num_kv_heads: Positive | None = None,
        d_k: Positive | None = None,
        d_v: Positive | None = None,
        use_bias: bool = False,
        kernel: AttentionKernel = SOFTMAX,
        query_norm: Callable = IDENTITY,
        key_norm: Callable = IDENTITY,
        key: PRNGKeyArray,
    ):
        if d_k is None or d_v is None:
            check_width(d_model, num_heads, "Choose other sizes, or give d_k and d_v yourself.")
        check_groups(num_heads, num_kv_heads)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        d_k, d_v = (d_model // num_heads if width is None else width for width in (d_k, d_v))

        def of_heads(heads, width, key):
            return Linear(d_model, heads * width, use_bias=use_bias, initialiser=glorot_heads(heads), key=key)

        query_key, key_key, value_key, output_key = jax.random.split(key, 4)
        self.query = of_heads(num_heads, d_k, query_key)
        self.key = of_heads(num_kv_heads, d_k, key_key)
        self.value = of_heads(num_kv_heads, d_v, value_key)
        self.output = Linear(num_heads * d_v, d_model, use_bias=use_bias, key=output_key)
        self.query_norm, self.key_norm = query_norm, key_norm
        self.num_heads, self.num_kv_heads, self.kernel = num_heads, num_kv_heads, kernel

    @property
    def d_model(self) -> int:
        """Width of a token."""
        return self.query.weight.shape[0]

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq kv_seq"] | Mask | None = None,
        *,
        context: Float[Array, "*batch kv_seq d_model"] | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> Float[Array, "*batch seq d_model"]:
        """Attend from every row of `x` to the rows of `context`, or of `x` itself if there is none.

        `mask` is `True` where attending is allowed. A position `scheme` may turn queries and keys, and add
        to the scores; rows of `x` and of `context` both count from 0. A row that may attend to nothing gets the output
        bias, or zeros.
        """
        context, mask = x if context is None else context, Mask.of(mask)
        mask.check(x.shape[-2], context.shape[-2], x.shape[:-2])
        queries, keys, values = self._queries(x, scheme), self._keys(context, scheme), self._values(context)
        # A group of query heads shares one key head: repeat it, so that every query head has a partner.
        group = self.num_heads // self.num_kv_heads
        keys, values = jnp.repeat(keys, group, axis=-3), jnp.repeat(values, group, axis=-3)
        heads = self.kernel(queries, keys, values, mask.for_heads(), scheme)
        return self.output(merge_heads(heads))

    def attention_weights(self, x, mask=None, **options) -> Float[Array, "*batch heads seq kv_seq"]:
        """Return the attention weights of every head, for the same arguments as a call."""
        return look(self, x, mask, **options)[1]["weights"]

    def _queries(self, x, scheme, positions=None) -> Float[Array, "*batch heads seq d_k"]:
        """The queries of all heads, turned by their positions."""
        queries = self.query_norm(split_heads(self.query(x), self.num_heads))
        return see("queries", rotate_by(scheme, queries, positions))

    def _keys(self, context, scheme, positions=None) -> Float[Array, "*batch kv_heads kv_seq d_k"]:
        """The keys, as many as there are key heads, turned by their positions."""
        keys = self.key_norm(split_heads(self.key(context), self.num_kv_heads))
        return see("keys", rotate_by(scheme, keys, positions))

    def _values(self, context) -> Float[Array, "*batch kv_heads kv_seq d_v"]:
        """The values, as many as there are key heads."""
        return see("values", split_heads(self.value(context), self.num_kv_heads))

    def make_cache(self, capacity: int, **options) -> KeyValueCache:
        """Make an empty cache with room for `capacity` tokens; options as for `KeyValueCache`."""
        return self.kernel.make_cache(
            self.num_kv_heads, capacity, *self._head_widths(), dtype=self.key.weight.dtype, **options
        )

    def _head_widths(self) -> tuple[int, int]:
        """Width of a key and of a value in one head."""
        return self.key.weight.shape[1] // self.num_kv_heads, self.value.weight.shape[1] // self.num_kv_heads

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        cache: KeyValueCache,
        positions: Integer[Array, "*batch seq"],
        *,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], KeyValueCache]:
        """Read further tokens: attend from each to itself and to what the cache holds of earlier positions.

        `positions` says where the tokens stand in their text, -1 for padding. Returns what a causal call on the whole
        text would give for these tokens, and the longer cache.
        """
        cache.check(self.num_kv_heads, *self._head_widths(), batch=x.shape[:-2])
        places = positions[..., None, :]  # the same in every head
        cache = cache.append(self._keys(x, scheme, places), self._values(x), positions)
        heads = self.kernel.attend_to_cache(self._queries(x, scheme, places), cache, positions, scheme)
        return self.output(merge_heads(see("heads", heads))), cache

    @checked
    def cache_context(
        self, context: Float[Array, "*batch kv_seq d_model"], is_token: Bool[Array, "*batch kv_seq"] | None = None
    ) -> KeyValueCache:
        """Keep the keys and values of a context, computed once, for every token that will read it.

        `is_token` is `False` for padding. All of the context counts as position 0, so that tokens at any position may
        attend to it. Implements `eq-seq2seq-cached-context`.
        """
        check_each(Positive, kv_seq=context.shape[-2])
        is_token = jnp.ones(context.shape[:-1], bool) if is_token is None else is_token
        context = jnp.where(is_token[..., None], context, 0)  # padding may hold NaN
        empty = self.make_cache(context.shape[-2], batch=is_token.shape[:-1])
        return empty.append(self._keys(context, NO_POSITIONS), self._values(context), jnp.where(is_token, 0, -1))

    @checked
    def attend_cached(
        self, x: Float[Array, "*batch seq d_model"], cache: KeyValueCache, positions: Integer[Array, "*batch seq"]
    ) -> Float[Array, "*batch seq d_model"]:
        """Attend from each token to a context that `cache_context` keeps; padding, at position -1, to nothing."""
        cache.check(self.num_kv_heads, *self._head_widths(), batch=x.shape[:-2])
        heads = self.kernel.attend_to_cache(self._queries(x, NO_POSITIONS), cache, positions, NO_POSITIONS)
        return self.output(merge_heads(see("heads", heads)))


class AcrossHeads(eqx.Module):
    r"""A norm of the queries, or keys, of all heads together: of the row that they make side by side.

    Implements `eq-modern-norm-across-heads`; OLMo et al. (2024), under "QK-norm".

    Args:
        norm: a norm of rows as wide as all heads, such as `RMSNorm(num_heads * d_k)`.

    Example:
        >>> norm = pf.attention.AcrossHeads(pf.RMSNorm(6))
        >>> norm(jnp.ones((2, 5, 3))).shape
        (2, 5, 3)
    """

    norm: Callable

    def __check_init__(self):
        check_each(Callable, norm=self.norm)

    @checked
    def __call__(self, heads: Float[Array, "*batch heads seq d_head"]) -> Float[Array, "*batch heads seq d_head"]:
        """Normalise each token's row."""
        return split_heads(self.norm(merge_heads(heads)), heads.shape[-3])


def check_width(d_model: int, num_heads: int, hint: str = "") -> None:
    """Raise `ValueError` unless heads of equal width make up a token."""
    if d_model % num_heads:
        expected = "expected heads of equal width."
        raise ValueError(f"d_model={d_model} is not a multiple of num_heads={num_heads}; {expected} {hint}".rstrip())


def check_groups(num_heads: int, num_kv_heads: int | None) -> None:
    """Raise `ValueError` unless equally many query heads share each key and value head."""
    if num_heads % (num_kv_heads or num_heads):
        expected = "expected equally many query heads for each key and value head."
        raise ValueError(f"num_heads={num_heads} is not a multiple of num_kv_heads={num_kv_heads}; {expected}")


def glorot_heads(num_heads: int):
    """An initialiser of matrices side by side, each started as if it stood alone."""

    def initialise(key: PRNGKeyArray, shape: tuple[int, int]) -> Float[Array, "d_in d_out"]:
        return merge_heads(glorot_normal(key, (num_heads, shape[0], shape[1] // num_heads)))

    return initialise
