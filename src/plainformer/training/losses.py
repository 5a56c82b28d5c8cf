"""How wrong a model is: cross-entropy and what is made of it (the primer, the chapters on the decoder and vision)."""

import math
from collections.abc import Callable
from typing import Annotated

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import Count, NonNegative, Number, PositiveFloat, Rate, check_each, checked, ids_in_range
from plainformer.data.named_batches import PackedWindows, PaddedWindows, Windows, check_kind
from plainformer.tokens.tokens import cosine_similarity

Nats = Annotated[float, Number(lambda nats: nats >= 0, "at least 0, such as 1.5")]


@checked
def cross_entropy(
    logits: Float[Array, "*batch vocab_size"],
    targets: Integer[Array, "*batch"],
    is_token: Bool[Array, "*batch"] | None = None,
    *,
    label_smoothing: Rate = 0.0,
    z_loss: NonNegative = 0.0,
) -> Float[Array, ""]:
    r"""Return the mean surprise at the targets, in nats.

    Implements `eq-primer-cross-entropy`; Bengio et al. (2003), section 2, as a negative log-likelihood; its gradient by
    the logits is `eq-primer-gradient`; with label smoothing `eq-seq2seq-label-smoothing`; Szegedy et al. (2016),
    section 7; with a z-loss `eq-recipes-z-loss`, whose gradient is `eq-recipes-z-gradient`; Chowdhery et al. (2022),
    section 5.

    Args:
        targets: the token that did come, one per row of logits.
        is_token: `True` where the target counts, `False` for padding; `None` for all.
        label_smoothing: the share of each target that is spread evenly over the vocabulary.
        z_loss: what is added for each target, times the square of the logarithm of the softmax's denominator; 1e-4 is
            usual. It keeps logits from growing together.

    Returns:
        The mean over what counts; 0 if nothing does. What is padding reaches neither the mean nor a gradient, whatever
        its logits and targets hold.

    Raises:
        ValueError: if a target that counts is out of range, which a compiled function finds when it runs.

    Example:
        Whoever finds four tokens equally likely is surprised by log 4, whichever comes.

        >>> logits, targets = jnp.zeros((3, 4)), jnp.asarray([0, 2, 3])
        >>> print(pf.cross_entropy(logits, targets).round(3), jnp.log(4).round(3))
        1.386 1.386
    """
    hint, counts = "To leave one out, use is_token.", True if is_token is None else is_token
    targets = ids_in_range(targets, logits.shape[-1], "targets", of="logits", hint=hint, where=counts)
    is_token = jnp.ones(targets.shape, bool) if is_token is None else is_token
    targets = jnp.where(is_token, targets, 0)
    logits = at_least_float32(logits)
    # Nothing goes back to what is padding: there a gradient of 0 times a NaN would be NaN.
    logits = jnp.where(is_token[..., None], logits, jax.lax.stop_gradient(logits))
    log_sum = jax.nn.logsumexp(logits, axis=-1)  # less a logit, it is that token's surprise
    surprise = log_sum - jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    if label_smoothing:
        surprise = (1 - label_smoothing) * surprise + label_smoothing * (log_sum - logits.mean(axis=-1))
    if z_loss:
        surprise = surprise + z_loss * log_sum**2
    return surprise.sum(where=is_token) / jnp.maximum(is_token.sum(), 1).astype(surprise.dtype)


@checked
def next_token_loss(
    model: Callable,
    batch: Windows | PaddedWindows | PackedWindows,
    key: PRNGKeyArray | None = None,
    *,
    z_loss: NonNegative = 0.0,
) -> Float[Array, ""]:
    r"""Return the mean cross-entropy of a language model on a batch of texts, in nats per token.

    Implements `eq-decoder-loss`; Radford et al. (2018), equation 1, as a mean.

    Args:
        model: from tokens to logits, such as a `Decoder`.
        batch: what `random_windows` draws, or windows with `is_token`, `False` where the target is padding; or what
            `pack` returns, of which the model reads the numbers of documents, too.
        key: a random key for dropout, or `None`.
        z_loss: as of `cross_entropy`; to train with it, hand `fit` a `functools.partial(next_token_loss, z_loss=1e-4)`.
    """
    check_kind(batch, Windows)
    return cross_entropy(model(*batch.read, key=key), batch.targets, batch.counts, z_loss=z_loss)


@checked
def contrastive_loss(
    images: Float[Array, "pairs d"], texts: Float[Array, "pairs d"], temperature: Float[Array, ""] | float = 0.07
) -> Float[Array, ""]:
    r"""Return how badly the vectors of two kinds find their partners among each other, in nats.

    Implements `eq-vision-contrastive`; Radford et al. (2021), section 2.3: cosines over the temperature are logits, by
    which each image chooses among all texts of the batch, and each text among all images.

    Args:
        images, texts: a vector for each; those of the same row belong together, and no others.
        temperature: what cosines are divided by, above 0; CLIP learns it, from 0.07 on.

    Example:
        Two pairs of vectors at right angles find each other: with this temperature the wrong one has a share of e⁻¹⁰.

        >>> print(pf.training.contrastive_loss(jnp.eye(2), 3 * jnp.eye(2), temperature=0.1).round(6))
        4.5e-05
    """
    if not isinstance(temperature, jax.Array):
        check_each(PositiveFloat, temperature=temperature)
    scores = at_least_float32(cosine_similarity(images, texts) / temperature)
    by_images, by_texts = jax.nn.log_softmax(scores, axis=1), jax.nn.log_softmax(scores.T, axis=1)
    return -(jnp.diag(by_images) + jnp.diag(by_texts)).mean() / 2


@checked
def perplexity(nats_per_token: Nats) -> float:
    r"""Return the number of equally likely tokens among which a model might as well have chosen blindly.

    Implements `eq-decoder-perplexity`; Jelinek et al. (1977).

    Returns:
        That number; infinity if it is too large for a float, beyond 709 nats.
    """
    try:
        return math.exp(nats_per_token)
    except OverflowError:
        return math.inf


@checked
def bits_from_nats(nats_per_token: Nats, num_tokens: Count, num_characters: Count) -> float:
    r"""Return the loss in bits per character, which compares models whatever their tokens are.

    Implements `eq-decoder-bits`; the numbers of tokens and of characters are those of the text it was measured on.
    """
    return nats_per_token * num_tokens / num_characters / math.log(2)
