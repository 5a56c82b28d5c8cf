"""From a weighted average to scaled dot-product attention, one function a step (chapter on self-attention).

The last two axes are a sequence and its features; whatever stands in front of them is a batch, of texts or of heads.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from plainformer.checks import Finite, Natural, Positive, check_each, checked
from plainformer.tokens.tokens import glorot_normal


@checked
def weighted_average(
    weights: Float[Array, "*batch q_seq kv_seq"], values: Float[Array, "*batch kv_seq d_v"]
) -> Float[Array, "*batch q_seq d_v"]:
    r"""Average the rows of `values`, once for each row of `weights`.

    Implements `eq-self-attention-average`; Bishop and Bishop (2024), section 12.1. Row n of the weights says how much
    of each value goes into output n; it is not checked to sum to one. Sums are taken in at least 32 bits, and returned
    in the dtype of `values`.
    """
    weights, rows = at_least_float32(weights), at_least_float32(values)
    return (weights @ rows).astype(values.dtype)


@checked
def window_weights(seq_len: Positive, radius: Natural) -> Float[Array, "seq seq"]:
    r"""Give every token within `radius` positions the same weight, and all others none.

    Implements `eq-relations-window`. Applied by `weighted_average` it is a convolution with a box filter.
    """
    positions = jnp.arange(seq_len)
    near = jnp.abs(positions[:, None] - positions[None, :]) <= radius
    return softmax(jnp.zeros((seq_len, seq_len)), near)  # equal scores, equal weights


@checked
def dot_product_scores(
    queries: Float[Array, "*batch q_seq d_k"], keys: Float[Array, "*batch kv_seq d_k"]
) -> Float[Array, "*batch q_seq kv_seq"]:
    r"""Compare every query with every key by their dot product.

    Implements `eq-self-attention-scores`; Bishop and Bishop (2024), section 12.1. Row n belongs to query n, column m to
    key m. Scores have at least 32 bits: what a 16-bit score loses by rounding, the exponential makes large.
    """
    queries, keys = at_least_float32(queries), at_least_float32(keys)
    return queries @ keys.mT


@checked
def shared_projection_scores(
    x: Float[Array, "*batch seq d_model"], projection: Float[Array, "d_model d_k"]
) -> Float[Array, "*batch seq seq"]:
    r"""Compare tokens after one and the same linear map.

    Implements `eq-self-attention-shared`; Turner (2023), section 2.1, in the row convention. The matrix is symmetric.
    """
    return dot_product_scores(x @ projection, x @ projection)


@checked
def scaled_scores(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    *,
    scale: Finite | None = None,
    bias: Float[Array, "*#batch q_seq kv_seq"] | None = None,
) -> Float[Array, "*batch q_seq kv_seq"]:
    r"""Compare every query with every key, in units of the typical size of a dot product.

    Implements `eq-self-attention-scaled`; Vaswani et al. (2017), section 3.2.1. Why: `eq-self-attention-variance`.
    What depends on position alone may be added by `bias`: `eq-positions-bias`. Arguments as for `attend`.
    """
    check_each(Positive, d_k=queries.shape[-1])
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    # The factor goes to the queries: q_seq * d_k multiplications instead of q_seq * kv_seq.
    queries = at_least_float32(queries)
    scores = dot_product_scores(queries * jnp.asarray(scale, queries.dtype), keys)
    return scores if bias is None else scores + bias.astype(scores.dtype)


@checked
def softmax(
    scores: Float[Array, "*batch q_seq kv_seq"], mask: Bool[Array, "*#batch q_seq kv_seq"] | None = None
) -> Float[Array, "*batch q_seq kv_seq"]:
    r"""Turn each row of scores into non-negative weights that sum to one, or into zeros if all is hidden.

    Implements `eq-self-attention-softmax`; Bridle (1990). The mask is as for `attend`: the weight of a hidden key is
    exactly zero. A row of finite scores with nothing to attend to is all zeros, and so are its gradients.

    Example:
        Scores are logarithms of proportions; and a causal mask leaves the first token nothing but itself.

        >>> print(pf.softmax(jnp.log(jnp.asarray([[1.0, 3.0]]))).round(2))
        [[0.25 0.75]]
        >>> print(pf.softmax(jnp.zeros((2, 2)), pf.causal_mask(2)))
        [[1.  0. ]
         [0.5 0.5]]
    """
    scores, dtype = at_least_float32(scores), scores.dtype  # a sum of many 16-bit numbers may overflow
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    largest = jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True, initial=-jnp.inf))
    # Nothing to attend to: the largest is -inf, and -inf - (-inf) would be NaN.
    exponentials = jnp.exp(scores - jnp.where(jnp.isneginf(largest), 0, largest))
    total = exponentials.sum(axis=-1, keepdims=True)
    return (exponentials / jnp.where(total == 0, 1, total)).astype(dtype)


@checked
def attention_weights(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    mask: Bool[Array, "*#batch q_seq kv_seq"] | None = None,
    *,
    scale: Finite | None = None,
    bias: Float[Array, "*#batch q_seq kv_seq"] | None = None,
) -> Float[Array, "*batch q_seq kv_seq"]:
    r"""Return how much each query attends to each key.

    Implements `eq-self-attention-weights`; Vaswani et al. (2017), equation 1, without the values. Each row sums to one,
    or is zero if its query may attend to nothing. Arguments as for `attend`.
    """
    return softmax(scaled_scores(queries, keys, scale=scale, bias=bias), mask).astype(queries.dtype)


@checked
def attend(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    values: Float[Array, "*batch kv_seq d_v"],
    mask: Bool[Array, "*#batch q_seq kv_seq"] | None = None,
    *,
    scale: Finite | None = None,
    bias: Float[Array, "*#batch q_seq kv_seq"] | None = None,
) -> Float[Array, "*batch q_seq d_v"]:
    r"""Scaled dot-product attention: average the values, weighted by how well each key answers the query.

    Implements `eq-self-attention-attend`; Vaswani et al. (2017), equation 1.

    Args:
        queries: what each output looks for.
        keys: what each token offers to be found by.
        values: what it passes on.
        mask: `True` where the query may attend to the key; `None` hides nothing.
        scale: the factor on the dot products; `None` for one over the root of d_k.
        bias: what is added to the scaled scores (chapter on positions); `None` for nothing.

    Returns:
        One vector per query, in the dtype of `values`; zeros for a query that may attend to nothing. What is hidden
        from every query (padding) has no influence even if it is NaN; a NaN hidden from some queries only reaches them
        all the same, since zero times NaN is NaN.

    Example:
        A query that both keys answer equally well gets the mean of their values; one that is far closer to the second
        key gets its value.

        >>> queries, keys = jnp.asarray([[1.0, 1.0], [0.0, 99.0]]), jnp.eye(2)
        >>> print(pf.attend(queries, keys, values=jnp.asarray([[10.0], [20.0]])))
        [[15.]
         [20.]]
    """
    keys, values = without_unseen(keys, mask), without_unseen(values, mask)
    weights = softmax(scaled_scores(queries, keys, scale=scale, bias=bias), mask)
    return weighted_average(weights, values)


def without_unseen(rows: Float[Array, "*batch kv_seq d"], mask) -> Float[Array, "*batch kv_seq d"]:
    """Zeros in place of rows that no query may attend to: zero times NaN would be NaN."""
    return rows if mask is None else jnp.where(mask.any(axis=-2)[..., None], rows, 0)


@checked
def hard_attention(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    values: Float[Array, "*batch kv_seq d_v"],
) -> Float[Array, "*batch q_seq d_v"]:
    r"""Give each query the value of its best key, and nothing of the others.

    Implements `eq-self-attention-hard`. It is the limit of `attend` as `scale` grows without bound. Keys that tie
    for the best score share equally. No gradient reaches queries or keys.
    """
    scores = jax.lax.stop_gradient(dot_product_scores(queries, keys))
    best = scores.max(axis=-1, keepdims=True, initial=-jnp.inf)
    weights = softmax(scores - best, ~(scores < best))  # not >=: a NaN should come out as NaN
    return weighted_average(weights, values)


@checked
def causal_mask(seq_len: Positive) -> Bool[Array, "seq seq"]:
    r"""Let each token attend to itself and to what came before it.

    Implements `eq-self-attention-causal`; Vaswani et al. (2017), section 3.2.3. `True` on and below the diagonal.

    Example:
        >>> print(pf.causal_mask(3))
        [[ True False False]
         [ True  True False]
         [ True  True  True]]
    """
    return jnp.tril(jnp.ones((seq_len, seq_len), bool))


@checked
def padding_mask(
    is_token: Bool[Array, "*batch kv_seq"], q_seq: Positive | None = None
) -> Bool[Array, "*batch q_seq kv_seq"]:
    r"""Let every query attend to real tokens only.

    Implements `eq-self-attention-padding`. Combine it with another mask by `&`. There are as many queries as keys,
    unless `q_seq` says otherwise.

    Example:
        The last of three tokens is padding, so that no query sees it.

        >>> print(pf.padding_mask(jnp.asarray([True, True, False]), q_seq=2))
        [[ True  True False]
         [ True  True False]]
    """
    kv_seq = is_token.shape[-1]
    q_seq = kv_seq if q_seq is None else q_seq
    return jnp.broadcast_to(is_token[..., None, :], (*is_token.shape[:-1], q_seq, kv_seq))


class SelfAttention(eqx.Module):
    r"""Self-attention with one head: queries, keys and values are three linear maps of the same tokens.

    Implements `eq-self-attention-layer`; Vaswani et al. (2017), section 3.2; Turner (2023), section 2.1.

    Args:
        d_model: width of a token.
        d_k: width of queries and keys.
        d_v: width of values and output; `None` for `d_model`.
        key: random key for the three weight matrices (Glorot normal).
    """

    query_weight: Float[Array, "d_model d_k"]
    key_weight: Float[Array, "d_model d_k"]
    value_weight: Float[Array, "d_model d_v"]

    @checked
    def __init__(self, d_model: Positive, d_k: Positive, d_v: Positive | None = None, *, key: PRNGKeyArray):
        d_v = d_model if d_v is None else d_v
        query_key, key_key, value_key = jax.random.split(key, 3)
        self.query_weight = glorot_normal(query_key, (d_model, d_k))
        self.key_weight = glorot_normal(key_key, (d_model, d_k))
        self.value_weight = glorot_normal(value_key, (d_model, d_v))

    @checked
    def __call__(
        self, x: Float[Array, "*batch seq d_model"], mask: Bool[Array, "*#batch seq seq"] | None = None
    ) -> Float[Array, "*batch seq d_v"]:
        """Attend from every token of `x` to every token that `mask` lets it see."""
        return attend(x @ self.query_weight, x @ self.key_weight, x @ self.value_weight, mask)

    @checked
    def attention_weights(
        self, x: Float[Array, "*batch seq d_model"], mask: Bool[Array, "*#batch seq seq"] | None = None
    ) -> Float[Array, "*batch seq seq"]:
        """Return the attention weights behind the output: row n says where token n looks."""
        return attention_weights(x @ self.query_weight, x @ self.key_weight, mask)


def at_least_float32(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return numbers in at least 32 bits: in 16, large sums and squares overflow, and small terms vanish."""
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x
