"""A softmax of which a part may go nowhere: each head has a learned sink beside its keys (chapter on modern models)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import checked


@checked
def softmax_with_sink(
    scores: Float[Array, "*batch heads q_seq kv_seq"],
    sinks: Float[Array, "heads"],
    mask: Bool[Array, "*#lead q_seq kv_seq"] | None = None,
) -> Float[Array, "*batch heads q_seq kv_seq"]:
    r"""Turn each row of scores into weights that sum to less than one: the rest is the share of the head's sink.

    Implements `eq-modern-sink`; OpenAI (2025), the attention of gpt-oss, for a learned logit in each head's
    denominator; Miller (2023), for a sink of zero; Xiao et al. (2023), section 3.1, for the first tokens, which serve
    as sinks in models without one.

    Args:
        scores: how well each key answers each query.
        sinks: one logit for each head, which every row of that head has in its denominator, and in no numerator.
        mask: as for `softmax`: `True` where the query may attend to the key.

    Example:
        Three equal scores and a sink that equals them: each of the four gets a quarter, and the sink's is lost.

        >>> print(pf.attention.softmax_with_sink(jnp.zeros((1, 1, 3)), jnp.zeros(1)))
        [[[0.25 0.25 0.25]]]
    """
    scores, dtype = at_least_float32(scores), scores.dtype
    sink = sinks[:, None, None].astype(scores.dtype)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    largest = jax.lax.stop_gradient(jnp.maximum(scores.max(axis=-1, keepdims=True), sink))
    exponentials = jnp.exp(scores - largest)
    total = exponentials.sum(axis=-1, keepdims=True) + jnp.exp(sink - largest)
    return (exponentials / total).astype(dtype)
