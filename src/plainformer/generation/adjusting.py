"""Logits changed before a token is drawn: by one's own function, for what was said before (chapter on serving)."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from plainformer.checks import Finite, PositiveFloat, checked
from plainformer.generation.stopping import Stopping

# From the logits of the next token, the prompt and what was written so far, -1 where there is nothing (yet), to logits.
Adjust = Callable[[Array, Array, Array], Array]

NOTHING_LEFT = (
    "adjust leaves no token that may come next: all its logits are -inf at some place. Expected at least one, such as "
    "the stop token; allowed_texts makes what always leaves one, if its stop token is among stop_tokens."
)


class Adjusting(Stopping, total=False):
    """What those take whose logits may be adjusted."""

    adjust: Adjust | None


def adjusted_by(adjust: Adjust, logits: Array, prompt: Array, written: Array) -> Array:
    """Return the logits of one text after `adjust`; raise `TypeError` if that returns something else."""
    found = adjust(logits, prompt, written)
    if getattr(found, "shape", None) != logits.shape:
        what = f"of shape {found.shape}" if hasattr(found, "shape") else f"a {type(found).__name__}"
        raise TypeError(f"adjust returns {what}; expected logits of shape {logits.shape}, one for each token.")
    return found.astype(logits.dtype)


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
