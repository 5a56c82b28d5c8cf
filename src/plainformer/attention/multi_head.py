"""Several attention heads side by side: as a sum, as a concatenation, and as one fast layer (chapter 03)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache, attend_to_cache, attend_with_cache, cache_context
from plainformer.attention.heads import merge_heads, split_heads
from plainformer.attention.self_attention import attend, attention_weights
from plainformer.checks import check_axes, check_mask, check_positive
from plainformer.positions.positions import check_scheme
from plainformer.tokens.tokens import linear_map


def multi_head_concat(
    x: Float[Array, "seq d_model"],
    query_weights: Float[Array, "heads d_model d_k"],
    key_weights: Float[Array, "heads d_model d_k"],
    value_weights: Float[Array, "heads d_model d_v"],
    output_weights: Float[Array, "heads d_v d_model"],
    mask: Bool[Array, "seq seq"] | None = None,
) -> Float[Array, "seq d_model"]:
    r"""Multi-head self-attention as it is usually written: concatenate the heads, then mix them.

    Implements `eq-multi-head-concat`; Vaswani et al. (2017), section 3.2.2.

    **Arguments**

    - `x`: one vector per token, `(seq, d_model)`.
    - `query_weights`, `key_weights`: one matrix per head, `(num_heads, d_model, d_k)`.
    - `value_weights`: one matrix per head, `(num_heads, d_model, d_v)`.
    - `output_weights`: the output matrix, cut into the rows that meet each head, `(num_heads, d_v, d_model)`.
    - `mask`: `True` where a token may attend to another, `(seq, seq)`; the same for every head.

    **Returns** one vector per token, `(seq, d_model)`.

    **Raises** `ValueError` if shapes do not fit together.
    """
    outputs = _head_outputs(x, query_weights, key_weights, value_weights, output_weights, mask)
    return jnp.concatenate(outputs, axis=1) @ jnp.concatenate(list(output_weights), axis=0)


def multi_head_sum(
    x: Float[Array, "seq d_model"],
    query_weights: Float[Array, "heads d_model d_k"],
    key_weights: Float[Array, "heads d_model d_k"],
    value_weights: Float[Array, "heads d_model d_v"],
    output_weights: Float[Array, "heads d_v d_model"],
    mask: Bool[Array, "seq seq"] | None = None,
) -> Float[Array, "seq d_model"]:
    r"""Multi-head self-attention as a sum: every head adds its own contribution to the output.

    Implements `eq-multi-head-sum`; Turner (2023), section 2.1, with his matrix for head h factored into a value and
    an output matrix; Elhage et al. (2021).

    **Arguments**, **Returns** and **Raises** as for `multi_head_concat`, whose result it equals up to rounding.
    """
    outputs = _head_outputs(x, query_weights, key_weights, value_weights, output_weights, mask)
    return sum(output @ weight for output, weight in zip(outputs, output_weights, strict=True))


class MultiHeadAttention(eqx.Module):
    r"""Multi-head attention over the tokens themselves, or over a `context`.

    Implements `eq-multi-head-layer`; Vaswani et al. (2017), section 3.2.2. With fewer key and value heads than query
    heads it is grouped-query attention, `eq-multi-head-grouped`; Ainslie et al. (2023); with a single one,
    multi-query attention; Shazeer (2019).

    **Arguments**

    - `d_model`: width of a token, in and out.
    - `num_heads`: number of query heads.
    - `num_kv_heads`: number of key and value heads, a divisor of `num_heads`; `None` for as many.
    - `d_k`, `d_v`: width of a key and of a value in one head; `None` for `d_model / num_heads`.
    - `use_bias`: whether each of the four maps adds a bias.
    - `key`: random key for the weight matrices (Glorot normal); biases start at zero.

    **Attributes** `query_weight`, `(d_model, num_heads * d_k)`, `key_weight`, `(d_model, num_kv_heads * d_k)`,
    `value_weight`, `(d_model, num_kv_heads * d_v)`, and `output_weight`, `(num_heads * d_v, d_model)`. The columns
    of each head (in `output_weight`, the rows) lie side by side, as `split_heads` cuts them. `query_bias`, `key_bias`,
    `value_bias` and `output_bias` are vectors as long as their matrix is wide, or `None`.

    **Raises** `ValueError` if a size is below 1 or the heads do not divide what they share.

    **Differs from the paper** only in layout: the matrices of all heads stand side by side in one, so that one
    product makes the queries of all of them.
    """

    query_weight: Float[Array, "d_model heads*d_k"]
    key_weight: Float[Array, "d_model kv_heads*d_k"]
    value_weight: Float[Array, "d_model kv_heads*d_v"]
    output_weight: Float[Array, "heads*d_v d_model"]
    query_bias: Float[Array, " heads*d_k"] | None
    key_bias: Float[Array, " kv_heads*d_k"] | None
    value_bias: Float[Array, " kv_heads*d_v"] | None
    output_bias: Float[Array, " d_model"] | None
    num_heads: int = eqx.field(static=True)
    num_kv_heads: int = eqx.field(static=True)

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        use_bias: bool = False,
        key: PRNGKeyArray,
    ):
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_positive(d_model=d_model, num_heads=num_heads, num_kv_heads=num_kv_heads)
        if num_heads % num_kv_heads:
            raise ValueError(
                f"num_heads={num_heads} is not a multiple of num_kv_heads={num_kv_heads}; "
                "expected equally many query heads for each key and value head."
            )
        if d_model % num_heads and None in (d_k, d_v):
            raise ValueError(
                f"d_model={d_model} is not a multiple of num_heads={num_heads}; "
                "choose other sizes, or give d_k and d_v yourself."
            )
        d_k = d_model // num_heads if d_k is None else d_k
        d_v = d_model // num_heads if d_v is None else d_v
        check_positive(d_k=d_k, d_v=d_v)
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        keys = jax.random.split(key, 4)
        self.query_weight = _stack_of_heads(keys[0], d_model, num_heads, d_k)
        self.key_weight = _stack_of_heads(keys[1], d_model, num_kv_heads, d_k)
        self.value_weight = _stack_of_heads(keys[2], d_model, num_kv_heads, d_v)
        self.output_weight = jax.nn.initializers.glorot_normal()(keys[3], (num_heads * d_v, d_model))
        self.query_bias = jnp.zeros(num_heads * d_k) if use_bias else None
        self.key_bias = jnp.zeros(num_kv_heads * d_k) if use_bias else None
        self.value_bias = jnp.zeros(num_kv_heads * d_v) if use_bias else None
        self.output_bias = jnp.zeros(d_model) if use_bias else None

    def __call__(
        self,
        x: Float[Array, "rows d_model"],
        mask: Bool[Array, "*num_texts seq kv_seq"] | None = None,
        *,
        context: Float[Array, "context_rows d_model"] | None = None,
        position=None,
        num_texts: int = 1,
    ) -> Float[Array, "rows d_model"]:
        """Attend from every row of `x` to the rows of `context`, or of `x` itself if there is none.

        `x` is `(seq, d_model)`, `context` `(kv_seq, d_model)`, `mask` `(seq, kv_seq)` with `True` where attending is
        allowed; the result is `(seq, d_model)`. A `position` scheme (chapter 05) may turn queries and keys by its
        `rotate`, and add to the scores by its `bias`; rows of `x` and of `context` both count from 0. A row that may
        attend to nothing gets the output bias, or zeros. Several texts of equal length may stand one below the other:
        with `num_texts`, `x` has `num_texts * seq` rows, `context` `num_texts * kv_seq`, each text attends to its own,
        and `mask` may be `(num_texts, seq, kv_seq)`. Raises `ValueError` if a shape is wrong or a batch is passed (use
        `num_texts` or `jax.vmap`), `TypeError` if the mask is not Boolean or `position` is no scheme.
        """
        queries, keys, values, bias = self._project(x, mask, context, position, num_texts)
        own_mask = 0 if mask is not None and mask.ndim == 3 else None
        in_each_text = jax.vmap(lambda q, k, v, m, b: attend(q, k, v, m, bias=b), in_axes=(0, 0, 0, own_mask, None))
        in_each_head = jax.vmap(in_each_text, in_axes=(0, 0, 0, None, 0))
        return self._mix(in_each_head(queries, keys, values, mask, bias))

    def weights(
        self,
        x: Float[Array, "seq d_model"],
        mask: Bool[Array, "seq kv_seq"] | None = None,
        *,
        context: Float[Array, "kv_seq d_model"] | None = None,
        position=None,
    ) -> Float[Array, "heads seq kv_seq"]:
        """The attention weights of every head, `(num_heads, seq, kv_seq)`, for the same arguments as a call."""
        queries, keys, _, bias = self._project(x, mask, context, position, 1)
        weights = jax.vmap(lambda q, k, b: attention_weights(q, k, mask, bias=b))
        return weights(queries[:, 0], keys[:, 0], bias)

    def new_cache(self, capacity: int, *, num_texts: int = 1) -> KeyValueCache:
        """Make an empty cache for `capacity` tokens of each of `num_texts` texts (chapter 06)."""
        d_k, d_v = (weight.shape[1] // self.num_kv_heads for weight in (self.key_weight, self.value_weight))
        return KeyValueCache(self.num_kv_heads, capacity, d_k, d_v, num_texts=num_texts, dtype=self.key_weight.dtype)

    def extend(
        self,
        x: Float[Array, "rows d_model"],
        cache: KeyValueCache,
        positions: Integer[Array, "num_texts seq"],
        *,
        position=None,
    ) -> tuple[Float[Array, "rows d_model"], KeyValueCache]:
        """Read further tokens: attend from each to itself and to what the cache holds of earlier positions.

        `x` is `(num_texts * seq, d_model)`, the texts one below the other; `positions` says where its tokens stand in
        their text, -1 for padding. Returns what a causal call on the whole texts would give for these tokens, and the
        longer cache. Raises as a call does, and `ValueError` if the cache is full or of another layer.
        """
        check_axes("positions", positions, num_texts=cache.positions.shape[0], seq=None)
        num_texts, seq = positions.shape
        check_axes("x", x, rows=num_texts * seq, d_model=self.query_weight.shape[0])
        queries, keys, values = self._heads(x, x, num_texts)
        heads, cache = attend_with_cache(queries, keys, values, cache, positions, position)
        return self._mix(heads), cache

    def context_cache(
        self, context: Float[Array, "rows d_model"], is_token: Bool[Array, "num_texts kv_seq"]
    ) -> KeyValueCache:
        """Keep the keys and values of a context, computed once, for every token that will `read` it (chapter 08).

        `context` is `(num_texts * kv_seq, d_model)`, the texts one below the other; `is_token` `False` for padding.
        """
        check_axes("is_token", is_token, num_texts=None, kv_seq=None)
        if is_token.dtype != np.bool_:  # 0 and -inf, as some add them to scores, would mean the opposite
            raise TypeError(f"is_token holds {is_token.dtype}; expected bool, True for a token, False for padding.")
        check_axes("context", context, rows=is_token.size, d_model=self.key_weight.shape[0])
        _, keys, values = self._heads(context, context, is_token.shape[0])
        return cache_context(keys, values, is_token)

    def read(
        self, x: Float[Array, "rows d_model"], cache: KeyValueCache, positions: Integer[Array, "num_texts seq"]
    ) -> Float[Array, "rows d_model"]:
        """Attend from each token to the context that `context_cache` keeps; arguments otherwise as for `extend`."""
        num_texts = cache.positions.shape[0]
        check_axes("positions", positions, num_texts=num_texts, seq=None)
        check_axes("x", x, rows=positions.size, d_model=self.query_weight.shape[0])
        d_k, rows = self.key_weight.shape[1] // self.num_kv_heads, self.num_kv_heads * num_texts
        check_axes("cache.keys", cache.keys, "The cache is of another layer.", rows=rows, d_k=d_k, kv_seq=None)
        queries = self._queries(x, num_texts)
        return self._mix(attend_to_cache(queries, cache, positions))

    def _heads(self, x, context, num_texts):
        """Queries `(num_heads, num_texts, seq, d_k)`; keys and values, of as many heads as they have."""
        keys = _of_texts(context, self.key_weight, self.key_bias, self.num_kv_heads, num_texts)
        values = _of_texts(context, self.value_weight, self.value_bias, self.num_kv_heads, num_texts)
        return self._queries(x, num_texts), keys, values

    def _queries(self, x, num_texts):
        return _of_texts(x, self.query_weight, self.query_bias, self.num_heads, num_texts)

    def _mix(self, heads):
        """From what the heads return, `(num_heads, num_texts, seq, d_v)`, to the rows of the output."""
        rows = merge_heads(heads.reshape(self.num_heads, -1, heads.shape[3]))
        return linear_map(rows, self.output_weight, self.output_bias)

    def _project(self, x, mask, context, position, num_texts):
        """Queries, keys and values, `(num_heads, num_texts, …)`, and bias, `(num_heads, …)`, after checking shapes."""
        d_model = self.query_weight.shape[0]
        check_positive(num_texts=num_texts)
        check_axes("x", x, seq=None, d_model=d_model)
        context = x if context is None else context
        check_axes("context", context, kv_seq=None, d_model=d_model)
        if x.shape[0] % num_texts or context.shape[0] % num_texts:
            rows = f"x has {x.shape[0]} rows, context {context.shape[0]}"
            raise ValueError(f"{rows}; expected multiples of num_texts={num_texts}, for texts of equal length.")
        seq, kv_seq = x.shape[0] // num_texts, context.shape[0] // num_texts
        texts = {"num_texts": num_texts} if getattr(mask, "ndim", 2) == 3 and num_texts > 1 else {}
        check_mask(mask, **texts, seq=seq, kv_seq=kv_seq)
        queries, keys, values = self._heads(x, context, num_texts)
        bias = None
        if position is not None:
            check_scheme(position)
            queries, keys = position.rotate(queries), position.rotate(keys)
            bias = position.bias(jnp.arange(seq), jnp.arange(kv_seq))
        if bias is not None:
            name, hint = f"The bias of {type(position).__name__}", f"Make it for the {self.num_heads} heads here."
            check_axes(name, bias, hint, heads=self.num_heads, q_seq=seq, kv_seq=kv_seq)
        # A group of query heads shares one key head: repeat it, so that every query head has a partner.
        group = self.num_heads // self.num_kv_heads
        return queries, jnp.repeat(keys, group, axis=0), jnp.repeat(values, group, axis=0), bias


def _stack_of_heads(key, d_model: int, num_heads: int, d_head: int):
    """Matrices `(d_model, d_head)` side by side, each started as if it stood alone."""
    matrices = jax.nn.initializers.glorot_normal(batch_axis=0)(key, (num_heads, d_model, d_head))
    return merge_heads(matrices)


def _of_texts(rows, weight, bias, num_heads: int, num_texts: int):
    """One of the three maps of all texts' rows, cut into heads and texts: `(num_heads, num_texts, seq, d_head)`."""
    heads = split_heads(linear_map(rows, weight, bias), num_heads)
    return heads.reshape(num_heads, num_texts, -1, heads.shape[2])


def _head_outputs(x, query_weights, key_weights, value_weights, output_weights, mask):
    """What each head alone returns, a list of `(seq, d_v)`, after checking that the shapes fit."""
    check_axes("x", x, seq=None, d_model=None)
    check_axes("query_weights", query_weights, heads=None, d_model=x.shape[1], d_k=None)
    num_heads, d_model, _ = query_weights.shape
    check_positive(heads=num_heads)
    check_axes("key_weights", key_weights, heads=num_heads, d_model=d_model, d_k=query_weights.shape[2])
    check_axes("value_weights", value_weights, heads=num_heads, d_model=d_model, d_v=None)
    check_axes("output_weights", output_weights, heads=num_heads, d_v=value_weights.shape[2], d_model=d_model)
    per_head = zip(query_weights, key_weights, value_weights, strict=True)
    return [attend(x @ w_q, x @ w_k, x @ w_v, mask) for w_q, w_k, w_v in per_head]
