"""What is made less likely because it has been said: penalties for repetition, presence and frequency (chapter 21)."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from plainformer.checks import Finite, PositiveFloat, checked


@checked
def penalise_repetition(
    logits: Float[Array, " vocab_size"], tokens: Int[Array, " seq"], penalty: PositiveFloat
) -> Float[Array, " vocab_size"]:
    r"""Make every token less likely that stands among `tokens`, by a factor on its logit.

    Implements `eq-serving-repetition`; Keskar et al. (2019), section 4.1. Differs from the paper: a negative logit is
    multiplied, as in Hugging Face's library, since dividing it would make its token more likely.

    Args:
        tokens: ids of the text so far, -1 where there is nothing.
        penalty: above 1 for less repetition; 1 changes nothing.

    Example:
        The first and the last of three tokens were said before.

        >>> print(pf.generation.penalise_repetition(jnp.array([2.0, 1.0, -1.0]), jnp.array([0, 2, 2, -1]), 2.0))
        [ 1.  1. -2.]
    """
    penalised = jnp.where(logits > 0, logits / penalty, logits * penalty)
    return jnp.where(_counts(logits, tokens) > 0, penalised, logits)


@checked
def penalise_counts(
    logits: Float[Array, " vocab_size"], tokens: Int[Array, " seq"], *, presence: Finite = 0.0, frequency: Finite = 0.0
) -> Float[Array, " vocab_size"]:
    r"""Take something off the logit of every token that stands among `tokens`, and something more each time it does.

    Implements `eq-serving-penalties`, in the form of OpenAI's interface, which counts what was written, not the prompt.

    Args:
        tokens: ids of the text so far, -1 where there is nothing.
        presence: what is taken off once.
        frequency: what is taken off for each time.

    Example:
        The first of three tokens was said once, the last one twice.

        >>> logits, said = jnp.array([2.0, 1.0, 3.0]), jnp.array([0, 2, 2, -1])
        >>> print(pf.generation.penalise_counts(logits, said, presence=0.5, frequency=0.25))
        [1.25 1.   2.  ]
    """
    counts = _counts(logits, tokens)
    return logits - presence * jnp.minimum(counts, 1) - frequency * counts


def _counts(logits, tokens) -> Float[Array, " vocab_size"]:
    """How often each token stands in a text; -1 is none of them."""
    return (tokens[:, None] == jnp.arange(logits.shape[0])).sum(axis=0).astype(logits.dtype)
