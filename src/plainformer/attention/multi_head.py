"""Several attention heads side by side: as a sum, as a concatenation, and as one layer (chapter 03)."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Num, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache, attend_to_cache
from plainformer.attention.efficiency import MaskRule, blockwise_attention
from plainformer.attention.linear import (
    EVERYTHING,
    attend_linearly_to_cache,
    check_linear,
    linear_attention,
    linear_weights,
)
from plainformer.attention.self_attention import attend, attention_weights
from plainformer.checks import Positive, check_axes, check_each, checked
from plainformer.positions.positions import NO_POSITIONS, PositionScheme, bias_of
from plainformer.tokens.tokens import Linear

IDENTITY = eqx.nn.Identity()
AttentionForm = Literal["direct", "blockwise", "linear"]


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

    **Arguments** one vector per token; a matrix of queries, of keys and of values per head; the output matrix, cut into
    the rows that meet each head; a mask as for `attend`, the same for every head.
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

    **Arguments** as for `multi_head_concat`, whose result it equals up to rounding.
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
    heads it is grouped-query attention, `eq-multi-head-grouped`; Ainslie et al. (2023); with a single one,
    multi-query attention; Shazeer (2019).

    **Arguments**

    - `d_model`: width of a token, in and out; `num_heads`: number of query heads.
    - `num_kv_heads`: number of key and value heads, a divisor of `num_heads`; `None` for as many.
    - `d_k`, `d_v`: width of a key and of a value in one head; `None` for `d_model / num_heads`.
    - `use_bias`: whether each of the four maps adds a bias, which starts at zero.
    - `form`: how attention is computed (chapter 11): `"direct"`, by `attend`; `"blockwise"`, with the same result; or
      `"linear"`, which is another layer.
    - `query_norm`, `key_norm`: what every query and every key goes through before positions turn them, such as
      `RMSNorm(d_k)`, as in Qwen3 (Yang et al., 2025, section 2); nothing by default.
    - `key`: random key for the weight matrices (Glorot normal).

    **Differs from the paper** only in layout: the matrices of all heads stand side by side in one, so that one
    product makes the queries of all of them.

    **Example**: three tokens come in and go out, and each of the two heads looks at them in its own way.

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
    form: str = eqx.field(static=True)

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
        form: AttentionForm = "direct",
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
            return Linear(d_model, heads * width, use_bias=use_bias, initialiser=_glorot_heads(heads), key=key)

        query_key, key_key, value_key, output_key = jax.random.split(key, 4)
        self.query = of_heads(num_heads, d_k, query_key)
        self.key = of_heads(num_kv_heads, d_k, key_key)
        self.value = of_heads(num_kv_heads, d_v, value_key)
        self.output = Linear(num_heads * d_v, d_model, use_bias=use_bias, key=output_key)
        self.query_norm, self.key_norm = query_norm, key_norm
        self.num_heads, self.num_kv_heads, self.form = num_heads, num_kv_heads, form

    @property
    def d_model(self) -> int:
        """Width of a token."""
        return self.query.weight.shape[0]

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq kv_seq"] | MaskRule | None = None,
        *,
        context: Float[Array, "*batch kv_seq d_model"] | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> Float[Array, "*batch seq d_model"]:
        """Attend from every row of `x` to the rows of `context`, or of `x` itself if there is none.

        `mask` is `True` where attending is allowed. A position `scheme` (chapter 05) may turn queries and keys, and add
        to the scores; rows of `x` and of `context` both count from 0. A row that may attend to nothing gets the output
        bias, or zeros.
        """
        queries, keys, values, mask = self._project(x, mask, context, scheme)
        heads = FORMS[self.form](queries, keys, values, mask, scheme)
        return self.output(merge_heads(heads))

    @checked
    def attention_weights(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq kv_seq"] | MaskRule | None = None,
        *,
        context: Float[Array, "*batch kv_seq d_model"] | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> Float[Array, "*batch heads seq kv_seq"]:
        """Return the attention weights of every head, for the same arguments as a call."""
        queries, keys, _, mask = self._project(x, mask, context, scheme)
        if self.form == "linear":
            return linear_weights(queries, keys, mask)
        table, bias = _tables(queries, keys, mask, scheme)
        return attention_weights(queries, keys, table, bias=bias)

    def _project(self, x, mask, context, scheme):
        """Queries, keys and values of all heads, with a mask for each, ready for `FORMS`."""
        context = x if context is None else context
        queries = self.query_norm(split_heads(self.query(x), self.num_heads))
        keys = self.key_norm(split_heads(self.key(context), self.num_kv_heads))
        values = split_heads(self.value(context), self.num_kv_heads)
        queries, keys = scheme.rotate(queries), scheme.rotate(keys)
        if isinstance(mask, jax.Array) and mask.shape[-1] != context.shape[-2]:
            kv_seq = context.shape[-2]
            raise ValueError(f"mask has {mask.shape[-1]} columns; expected kv_seq={kv_seq}, one for each key.")
        # A group of query heads shares one key head: repeat it, so that every query head has a partner.
        group = self.num_heads // self.num_kv_heads
        keys, values = jnp.repeat(keys, group, axis=-3), jnp.repeat(values, group, axis=-3)
        if mask is not None:  # the same for every head
            mask = mask.for_heads() if isinstance(mask, MaskRule) else mask[..., None, :, :]
        return queries, keys, values, mask

    def make_cache(self, capacity: int, *, batch: tuple[int, ...] = (), sliding: bool = False) -> KeyValueCache:
        """Make an empty cache with room for `capacity` tokens, of each text of a batch (chapter 07)."""
        d_k, d_v = self._head_widths()
        dtype = self.key.weight.dtype
        return KeyValueCache(self.num_kv_heads, capacity, d_k, d_v, batch=batch, dtype=dtype, sliding=sliding)

    def _head_widths(self) -> tuple[int, int]:
        """Width of a key and of a value in one head."""
        return self.key.weight.shape[1] // self.num_kv_heads, self.value.weight.shape[1] // self.num_kv_heads

    def _check_cache(self, cache: KeyValueCache, batch: tuple[int, ...]) -> None:
        """Raise `ValueError` unless a cache is of this layer and of these texts: `append` looks when called alone."""
        d_k, d_v = self._head_widths()
        shared: dict[str, Any] = {"*batch": batch, "kv_heads": self.num_kv_heads}
        hint = f"The cache is of another layer or of other texts: make it by this one's make_cache(…, batch={batch})."
        check_axes("cache.keys", cache.keys, hint, **shared, d_k=d_k, capacity=None)
        check_axes("cache.values", cache.values, hint, **shared, capacity=None, d_v=d_v)

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
        self._check_cache(cache, x.shape[:-2])
        queries = scheme.rotate(self.query_norm(split_heads(self.query(x), self.num_heads)), positions[..., None, :])
        keys = scheme.rotate(self.key_norm(split_heads(self.key(x), self.num_kv_heads)), positions[..., None, :])
        values = split_heads(self.value(x), self.num_kv_heads)
        cache = cache.append(keys, values, positions)
        heads = self._read(queries, cache, positions, scheme)
        return self.output(merge_heads(heads)), cache

    @checked
    def cache_context(
        self, context: Float[Array, "*batch kv_seq d_model"], is_token: Bool[Array, "*batch kv_seq"] | None = None
    ) -> KeyValueCache:
        """Keep the keys and values of a context, computed once, for every token that will read it (chapter 09).

        `is_token` is `False` for padding. All of the context counts as position 0, so that tokens at any position may
        attend to it. Implements `eq-seq2seq-cached-context`.
        """
        check_each(Positive, kv_seq=context.shape[-2])
        is_token = jnp.ones(context.shape[:-1], bool) if is_token is None else is_token
        context = jnp.where(is_token[..., None], context, 0)  # padding may hold NaN
        keys = self.key_norm(split_heads(self.key(context), self.num_kv_heads))
        values = split_heads(self.value(context), self.num_kv_heads)
        empty = self.make_cache(context.shape[-2], batch=is_token.shape[:-1])
        return empty.append(keys, values, jnp.where(is_token, 0, -1))

    @checked
    def attend_cached(
        self, x: Float[Array, "*batch seq d_model"], cache: KeyValueCache, positions: Integer[Array, "*batch seq"]
    ) -> Float[Array, "*batch seq d_model"]:
        """Attend from each token to a context that `cache_context` keeps; padding, at position -1, to nothing."""
        self._check_cache(cache, x.shape[:-2])
        queries = self.query_norm(split_heads(self.query(x), self.num_heads))
        return self.output(merge_heads(self._read(queries, cache, positions, NO_POSITIONS)))

    def _read(self, queries, cache, positions, scheme) -> Float[Array, "*batch heads seq d_v"]:
        """Attend to a cache, by the softmax or without."""
        if self.form == "linear":
            return attend_linearly_to_cache(queries, cache, positions)
        return attend_to_cache(queries, cache, positions, scheme)


def _direct(queries, keys, values, mask, scheme) -> Float[Array, "*batch heads seq d_v"]:
    """All scores of a head at once, in a table."""
    table, bias = _tables(queries, keys, mask, scheme)
    return attend(queries, keys, values, table, bias=bias)


def _blockwise(queries, keys, values, mask, scheme) -> Float[Array, "*batch heads seq d_v"]:
    """A block of the scores at a time."""
    bias_of(scheme, jnp.arange(1), jnp.arange(1), queries.shape[-3])  # raises if it is made for other heads
    return blockwise_attention(queries, keys, values, mask, scheme=scheme)


def _linear(queries, keys, values, mask, scheme) -> Float[Array, "*batch heads seq d_v"]:
    """No scores, only sums."""
    check_linear(mask, scheme)
    return linear_attention(queries, keys, values, mask or EVERYTHING)


FORMS = {"direct": _direct, "blockwise": _blockwise, "linear": _linear}


def _tables(queries, keys, mask, scheme):
    """The mask and what positions add to the scores, each for all queries and keys."""
    num_heads, seq, kv_seq = queries.shape[-3], queries.shape[-2], keys.shape[-2]
    table = mask.table(seq, kv_seq) if isinstance(mask, MaskRule) else mask
    return table, bias_of(scheme, jnp.arange(seq), jnp.arange(kv_seq), num_heads)


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


def _glorot_heads(num_heads: int):
    """An initialiser of matrices side by side, each started as if it stood alone."""
    of_one_head = jax.nn.initializers.glorot_normal(batch_axis=0)

    def initialise(key: PRNGKeyArray, shape: tuple[int, int]) -> Float[Array, "d_in d_out"]:
        return merge_heads(of_one_head(key, (num_heads, shape[0], shape[1] // num_heads)))

    return initialise
