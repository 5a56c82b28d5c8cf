"""Several attention heads side by side: as a sum, as a concatenation, and as one fast layer (chapter 03)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from plainformer.errors import check_axes, check_mask, check_positive
from plainformer.self_attention import attend, attention_weights
from plainformer.tokens import linear_map


def split_heads(x: Float[Array, "seq width"], num_heads: int) -> Float[Array, "heads seq d_head"]:
    r"""Cut each row into `num_heads` equal pieces and stack the pieces of each head into a matrix.

    Implements `eq-multi-head-split`; the columns of head h are those from h d_head to (h + 1) d_head, counted from 0.

    **Arguments**

    - `x`: one row per token, the heads side by side, `(seq, num_heads * d_head)`.
    - `num_heads`: how many pieces.

    **Returns** one matrix per head, `(num_heads, seq, d_head)`, so that the matrix products of a head are innermost.

    **Raises** `ValueError` if the width is not a multiple of `num_heads`.
    """
    check_axes("x", x, seq=None, width=None)
    check_positive(num_heads=num_heads)
    seq, width = x.shape
    if width % num_heads:
        raise ValueError(f"x is {width} wide, which {num_heads} heads cannot share equally; wanted a multiple.")
    # Reshape, then transpose: reshaping straight to (heads, seq, d_head) would cut across tokens.
    return x.reshape(seq, num_heads, width // num_heads).transpose(1, 0, 2)


def merge_heads(heads: Float[Array, "heads seq d_head"]) -> Float[Array, "seq width"]:
    r"""Lay the heads' rows side by side again: the inverse of `split_heads`.

    Implements `eq-multi-head-merge`.

    **Arguments**

    - `heads`: one matrix per head, `(num_heads, seq, d_head)`.

    **Returns** one row per token, `(seq, num_heads * d_head)`.

    **Raises** `ValueError` if `heads` does not have three axes.
    """
    check_axes("heads", heads, heads=None, seq=None, d_head=None)
    num_heads, seq, d_head = heads.shape
    return heads.transpose(1, 0, 2).reshape(seq, num_heads * d_head)


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
                "wanted equally many query heads for each key and value head."
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
        x: Float[Array, "seq d_model"],
        mask: Bool[Array, "seq kv_seq"] | None = None,
        *,
        context: Float[Array, "kv_seq d_model"] | None = None,
        position=None,
    ) -> Float[Array, "seq d_model"]:
        """Attend from every row of `x` to the rows of `context`, or of `x` itself if there is none.

        `x` is `(seq, d_model)`, `context` `(kv_seq, d_model)`, `mask` `(seq, kv_seq)` with `True` where attending is
        allowed; the result is `(seq, d_model)`. A `position` scheme (chapter 05) may turn queries and keys by its
        `rotate`, and add to the scores by its `bias`. A row that may attend to nothing gets the output bias, or zeros.
        Raises `ValueError` if a shape is wrong or a batch is passed (use `jax.vmap`), `TypeError` if the mask is not
        Boolean or `position` is no scheme.
        """
        queries, keys, values, bias = self._project(x, mask, context, position)
        heads = jax.vmap(attend, in_axes=(0, 0, 0, None))(queries, keys, values, mask, bias=bias)
        return linear_map(merge_heads(heads), self.output_weight, self.output_bias)

    def weights(
        self,
        x: Float[Array, "seq d_model"],
        mask: Bool[Array, "seq kv_seq"] | None = None,
        *,
        context: Float[Array, "kv_seq d_model"] | None = None,
        position=None,
    ) -> Float[Array, "heads seq kv_seq"]:
        """The attention weights of every head, `(num_heads, seq, kv_seq)`, for the same arguments as a call."""
        queries, keys, _, bias = self._project(x, mask, context, position)
        return jax.vmap(attention_weights, in_axes=(0, 0, None))(queries, keys, mask, bias=bias)

    def _project(self, x, mask, context, position):
        """Queries `(heads, seq, d_k)`, keys and values `(heads, kv_seq, …)` and bias, after checking the shapes."""
        d_model = self.query_weight.shape[0]
        check_axes("x", x, seq=None, d_model=d_model)
        context = x if context is None else context
        check_axes("context", context, kv_seq=None, d_model=d_model)
        check_mask(mask, seq=x.shape[0], kv_seq=context.shape[0])
        queries = split_heads(linear_map(x, self.query_weight, self.query_bias), self.num_heads)
        keys = split_heads(linear_map(context, self.key_weight, self.key_bias), self.num_kv_heads)
        values = split_heads(linear_map(context, self.value_weight, self.value_bias), self.num_kv_heads)
        bias = None
        if position is not None:
            _check_scheme(position)
            queries, keys = position.rotate(queries), position.rotate(keys)
            bias = position.bias(jnp.arange(queries.shape[1]), jnp.arange(keys.shape[1]))
            if bias is not None:
                name, hint = f"The bias of {type(position).__name__}", f"Make it for the {self.num_heads} heads here."
                check_axes(name, bias, hint, heads=self.num_heads, q_seq=queries.shape[1], kv_seq=keys.shape[1])
        # A group of query heads shares one key head: repeat it, so that every query head has a partner.
        group = self.num_heads // self.num_kv_heads
        return queries, jnp.repeat(keys, group, axis=0), jnp.repeat(values, group, axis=0), bias


def _check_scheme(position) -> None:
    """Raise `TypeError` unless `position` is an object that can rotate and bias."""
    if isinstance(position, type):
        name = position.__name__
        raise TypeError(f"position is the class {name}; wanted an object of it: make one first, by {name}(…).")
    if not (hasattr(position, "rotate") and hasattr(position, "bias")):
        came = type(position).__name__
        raise TypeError(f"position is of type {came}; wanted a scheme of chapter 05, such as RotaryPositions().")


def _stack_of_heads(key, d_model: int, num_heads: int, d_head: int):
    """Matrices `(d_model, d_head)` side by side, each started as if it stood alone."""
    matrices = jax.nn.initializers.glorot_normal(batch_axis=0)(key, (num_heads, d_model, d_head))
    return merge_heads(matrices)


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
