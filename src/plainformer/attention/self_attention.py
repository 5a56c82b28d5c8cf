"""From a weighted average to scaled dot-product attention, one function a step (chapter 02)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from plainformer.checks import as_floats, check_axes, check_bias, check_mask, check_positive


def weighted_average(
    weights: Float[Array, "q_seq kv_seq"], values: Float[Array, "kv_seq d_v"]
) -> Float[Array, "q_seq d_v"]:
    r"""Average the rows of `values`, once for each row of `weights`.

    Implements `eq-self-attention-average`; Bishop and Bishop (2024), section 12.1.

    **Arguments** `weights`, `(q_seq, kv_seq)`: row n says how much of each value goes into output n; not checked to sum
    to one. `values`, `(kv_seq, d_v)`: as many as a row has weights, or `ValueError` is raised. **Returns** one average
    per row of `weights`, `(q_seq, d_v)`.
    """
    check_axes("weights", weights, q_seq=None, kv_seq=None)
    check_axes("values", values, kv_seq=weights.shape[1], d_v=None)
    return weights @ values


def window_weights(seq_len: int, radius: int) -> Float[Array, "seq seq"]:
    r"""Give every token within `radius` positions the same weight, and all others none.

    Implements `eq-self-attention-window`. Applied by `weighted_average` it is a convolution with a box filter.

    **Arguments**

    - `seq_len`: the number of tokens, at least 1.
    - `radius`: how many neighbours on each side count, at least 0.

    **Returns** weights whose rows sum to one, `(seq, seq)`.

    **Raises** `ValueError` if `seq_len` is below 1, or `radius` is negative or not a whole number.
    """
    check_positive(seq_len=seq_len)
    if radius < 0 or radius % 1:
        raise ValueError(f"radius is {radius}; expected a whole number: 0 (only the token itself) or more.")
    positions = jnp.arange(seq_len)
    near = jnp.abs(positions[:, None] - positions[None, :]) <= radius
    return softmax(jnp.zeros((seq_len, seq_len)), near)  # equal scores, equal weights


def dot_product_scores(
    queries: Float[Array, "q_seq d_k"], keys: Float[Array, "kv_seq d_k"]
) -> Float[Array, "q_seq kv_seq"]:
    r"""Compare every query with every key by their dot product.

    Implements `eq-self-attention-scores`; Bishop and Bishop (2024), section 12.1.

    **Arguments** `queries`, `(q_seq, d_k)`, and `keys`, `(kv_seq, d_k)`. **Raises** `ValueError` if they differ in
    width, or either is not a matrix.

    **Returns** the scores, `(q_seq, kv_seq)`: row n belongs to query n, column m to key m.
    """
    check_axes("queries", queries, q_seq=None, d_k=None)
    check_axes("keys", keys, kv_seq=None, d_k=queries.shape[1])
    return queries @ keys.T


def shared_projection_scores(
    x: Float[Array, "seq d_model"], projection: Float[Array, "d_model d_k"]
) -> Float[Array, "seq seq"]:
    r"""Compare tokens after one and the same linear map.

    Implements `eq-self-attention-shared`; Turner (2023), section 2.1, in the row convention.

    **Arguments** `x`, one vector per token, `(seq, d_model)`, and the map `projection`, `(d_model, d_k)`, whose rows
    must be as many as `x` has columns, or `ValueError` is raised. **Returns** a symmetric matrix, `(seq, seq)`.
    """
    check_axes("x", x, seq=None, d_model=None)
    check_axes("projection", projection, d_model=x.shape[1], d_k=None)
    return dot_product_scores(x @ projection, x @ projection)


def scaled_scores(
    queries: Float[Array, "q_seq d_k"],
    keys: Float[Array, "kv_seq d_k"],
    *,
    scale: float | None = None,
    bias: Float[Array, "q_seq kv_seq"] | None = None,
) -> Float[Array, "q_seq kv_seq"]:
    r"""Compare every query with every key, in units of the typical size of a dot product.

    Implements `eq-self-attention-scaled`; Vaswani et al. (2017), section 3.2.1. Why: `eq-self-attention-variance`.
    What depends on position alone may be added by `bias`: `eq-positions-bias`.

    **Arguments** and **Raises** as for `attend`, without values and mask.

    **Returns** the scaled scores, `(q_seq, kv_seq)`.
    """
    queries = as_floats("queries", queries, q_seq=None, d_k=None)
    check_positive(d_k=queries.shape[1])
    scale = 1 / math.sqrt(queries.shape[1]) if scale is None else scale
    # The factor goes to the queries: q_seq * d_k multiplications instead of q_seq * kv_seq.
    scores = dot_product_scores(queries * jnp.asarray(scale, queries.dtype), keys)
    if bias is None:
        return scores
    check_bias(bias, q_seq=scores.shape[0], kv_seq=scores.shape[1])
    return scores + bias.astype(scores.dtype)


def softmax(
    scores: Float[Array, "q_seq kv_seq"], mask: Bool[Array, "q_seq kv_seq"] | None = None
) -> Float[Array, "q_seq kv_seq"]:
    r"""Turn each row of scores into non-negative weights that sum to one, or into zeros if all is hidden.

    Implements `eq-self-attention-softmax`; Bridle (1990).

    **Arguments**

    - `scores`: one row per query, one column per key, `(q_seq, kv_seq)`.
    - `mask`: `True` where the query may attend to the key, `(q_seq, kv_seq)`; `None` hides nothing.

    **Returns** the weights, `(q_seq, kv_seq)`, exactly zero for a hidden key. A row of finite scores with nothing to
    attend to is all zeros, and so are its gradients.

    **Raises** `TypeError` if scores are no floats or the mask is not Boolean, `ValueError` if their shapes differ.
    """
    scores = as_floats("scores", scores, q_seq=None, kv_seq=None)
    check_mask(mask, q_seq=scores.shape[0], kv_seq=scores.shape[1])
    exponentials, total = _masked_exponentials(scores, mask)
    return (exponentials / total).astype(scores.dtype)


def attention_weights(
    queries: Float[Array, "q_seq d_k"],
    keys: Float[Array, "kv_seq d_k"],
    mask: Bool[Array, "q_seq kv_seq"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[Array, "q_seq kv_seq"] | None = None,
) -> Float[Array, "q_seq kv_seq"]:
    r"""Say how much each query attends to each key.

    Implements `eq-self-attention-weights`; Vaswani et al. (2017), equation 1, without the values.

    **Arguments** and **Raises** as for `attend`, without the values.

    **Returns** the weights, `(q_seq, kv_seq)`; each row sums to one, or is zero if its query may attend to nothing.
    """
    return softmax(scaled_scores(queries, keys, scale=scale, bias=bias), mask)


def attend(
    queries: Float[Array, "q_seq d_k"],
    keys: Float[Array, "kv_seq d_k"],
    values: Float[Array, "kv_seq d_v"],
    mask: Bool[Array, "q_seq kv_seq"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[Array, "q_seq kv_seq"] | None = None,
) -> Float[Array, "q_seq d_v"]:
    r"""Scaled dot-product attention: average the values, weighted by how well each key answers the query.

    Implements `eq-self-attention-attend`; Vaswani et al. (2017), equation 1.

    **Arguments**

    - `queries`: what each output looks for, `(q_seq, d_k)`.
    - `keys`: what each token offers to be found by, `(kv_seq, d_k)`.
    - `values`: what each token passes on, `(kv_seq, d_v)`.
    - `mask`: `True` where the query may attend to the key, `(q_seq, kv_seq)`; `None` hides nothing.
    - `scale`: the factor on the dot products; `None` for one over the root of d_k.
    - `bias`: what is added to the scaled scores, `(q_seq, kv_seq)` (chapter 05); `None` for nothing.

    **Returns** one vector per query, `(q_seq, d_v)`; zeros for a query that may attend to nothing. What is hidden
    from every query (padding) has no influence even if it is NaN; a NaN hidden from some queries only reaches them
    all the same, since zero times NaN is NaN.

    **Raises** `ValueError` if shapes do not fit together or a batch is passed (use `jax.vmap`); `TypeError` if the mask
    is not Boolean, or if queries or values hold no floats.

    **Differs from the paper** in the order of the steps: the sum is divided out after the product with the values, the
    same number with fewer divisions when kv_seq exceeds d_v.
    """
    check_axes("queries", queries, q_seq=None, d_k=None)
    check_axes("keys", keys, kv_seq=None, d_k=queries.shape[1])
    values = as_floats("values", values, kv_seq=keys.shape[0], d_v=None)
    check_mask(mask, q_seq=queries.shape[0], kv_seq=keys.shape[0])
    if mask is not None:
        seen = mask.any(axis=0)[:, None]
        keys, values = jnp.where(seen, keys, 0), jnp.where(seen, values, 0)
    exponentials, total = _masked_exponentials(scaled_scores(queries, keys, scale=scale, bias=bias), mask)
    return (exponentials @ values.astype(total.dtype) / total).astype(values.dtype)


def hard_attend(
    queries: Float[Array, "q_seq d_k"], keys: Float[Array, "kv_seq d_k"], values: Float[Array, "kv_seq d_v"]
) -> Float[Array, "q_seq d_v"]:
    r"""Give each query the value of its best key, and nothing of the others.

    Implements `eq-self-attention-hard`. It is the limit of `attend` as `scale` grows without bound. Keys that tie
    for the best score share equally.

    **Arguments** and **Raises** as for `attend`, without mask and scale.

    **Returns** one vector per query, `(q_seq, d_v)`. No gradient reaches queries or keys.
    """
    scores = jax.lax.stop_gradient(dot_product_scores(queries, keys))
    check_axes("values", values, kv_seq=keys.shape[0], d_v=None)
    best = scores.max(axis=1, keepdims=True, initial=-jnp.inf)
    weights = softmax(scores - best, ~(scores < best))  # not >=: a NaN should come out as NaN
    return weighted_average(weights, values)


def causal_mask(seq_len: int) -> Bool[Array, "seq seq"]:
    r"""Let each token attend to itself and to what came before it.

    Implements `eq-self-attention-causal`; Vaswani et al. (2017), section 3.2.3.

    **Returns** `True` on and below the diagonal, `(seq, seq)`. **Raises** `ValueError` if `seq_len` is below 1.
    """
    check_positive(seq_len=seq_len)
    return jnp.tril(jnp.ones((seq_len, seq_len), bool))


def padding_mask(is_token: Bool[Array, " kv_seq"], q_seq: int | None = None) -> Bool[Array, "q_seq kv_seq"]:
    r"""Let every query attend to real tokens only.

    Implements `eq-self-attention-padding`. Combine it with another mask by `&`.

    **Arguments** `is_token`, `(kv_seq,)`: `True` for a token, `False` for padding. `q_seq`: the number of queries;
    `None` for as many as there are keys.

    **Returns** the same row for every query, `(q_seq, kv_seq)`.

    **Raises** `TypeError` if `is_token` is not Boolean, `ValueError` if it is not a vector.
    """
    check_axes("is_token", is_token, kv_seq=None)
    if is_token.dtype != jnp.bool_:
        raise TypeError(f"is_token holds {is_token.dtype}; expected bool, True for a token. Try is_token == 1.")
    if q_seq is None:
        q_seq = is_token.shape[0]
    else:
        check_positive(q_seq=q_seq)
    return jnp.broadcast_to(is_token[None, :], (q_seq, is_token.shape[0]))


class SelfAttention(eqx.Module):
    r"""Self-attention with one head: queries, keys and values are three linear maps of the same tokens.

    Implements `eq-self-attention-layer`; Vaswani et al. (2017), section 3.2; Turner (2023), section 2.1.

    **Arguments**

    - `d_model`, `d_k`: width of a token; of queries and keys.
    - `d_v`: width of values and of the output; `None` for `d_model`.
    - `key`: random key for the three weight matrices (Glorot normal).

    **Attributes** `query_weight` and `key_weight`, `(d_model, d_k)`, and `value_weight`, `(d_model, d_v)`. **Raises**
    `ValueError` if a width is below 1.
    """

    query_weight: Float[Array, "d_model d_k"]
    key_weight: Float[Array, "d_model d_k"]
    value_weight: Float[Array, "d_model d_v"]

    def __init__(self, d_model: int, d_k: int, d_v: int | None = None, *, key: PRNGKeyArray):
        d_v = d_model if d_v is None else d_v
        check_positive(d_model=d_model, d_k=d_k, d_v=d_v)
        glorot = jax.nn.initializers.glorot_normal()
        query_key, key_key, value_key = jax.random.split(key, 3)
        self.query_weight = glorot(query_key, (d_model, d_k))
        self.key_weight = glorot(key_key, (d_model, d_k))
        self.value_weight = glorot(value_key, (d_model, d_v))

    def __call__(
        self, x: Float[Array, "seq d_model"], mask: Bool[Array, "seq seq"] | None = None
    ) -> Float[Array, "seq d_v"]:
        """Attend from every token of `x`, `(seq, d_model)`, to every token that `mask` lets it see."""
        check_axes("x", x, seq=None, d_model=self.query_weight.shape[0])
        return attend(x @ self.query_weight, x @ self.key_weight, x @ self.value_weight, mask)

    def weights(
        self, x: Float[Array, "seq d_model"], mask: Bool[Array, "seq seq"] | None = None
    ) -> Float[Array, "seq seq"]:
        """The attention weights behind the output, `(seq, seq)`: row n says where token n looks."""
        check_axes("x", x, seq=None, d_model=self.query_weight.shape[0])
        return attention_weights(x @ self.query_weight, x @ self.key_weight, mask)


def _masked_exponentials(scores, mask):
    """The softmax's numerators, `(q_seq, kv_seq)`, and their row sums, `(q_seq, 1)`; a sum of zero is given as one."""
    if scores.dtype.itemsize < 4:  # a sum of many 16-bit numbers may overflow
        scores = scores.astype(jnp.float32)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    largest = jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True, initial=-jnp.inf))
    # Nothing to attend to: the largest is -inf, and -inf - (-inf) would be NaN.
    exponentials = jnp.exp(scores - jnp.where(jnp.isneginf(largest), 0, largest))
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials, jnp.where(total == 0, 1, total)
