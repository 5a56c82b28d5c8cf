"""How wrong a model is: cross-entropy and what is made of it (chapter 06)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import as_number, check_fraction, check_positive, checked, refuse


@checked
def cross_entropy(
    logits: Float[Array, "*batch vocab_size"],
    targets: Integer[Array, "*batch"],
    is_token: Bool[Array, "*batch"] | None = None,
    *,
    label_smoothing: float = 0.0,
) -> Float[Array, ""]:
    r"""Return the mean surprise at the targets, in nats.

    Implements `eq-decoder-cross-entropy`; Bengio et al. (2003), section 2, as a negative log-likelihood; with label
    smoothing `eq-seq2seq-label-smoothing`; Szegedy et al. (2016), section 7.

    **Arguments**

    - `logits`: one row per token; for a text `(seq, vocab_size)`, for several `(batch, seq, vocab_size)`.
    - `targets`: the token that did come, one per row.
    - `is_token`: `True` where the target counts, `False` for padding; `None` for all.
    - `label_smoothing`: the share of each target that is spread evenly over the vocabulary, at least 0 and below 1.

    **Returns** the mean over what counts; 0 if nothing does. What is padding reaches neither the mean nor a gradient,
    whatever its logits and targets hold.

    **Raises** `ValueError` if shapes differ, `label_smoothing` is out of range, or a target that counts is, which a
    compiled function finds when it runs; `TypeError` if `logits` are not floats, or `is_token` is not Boolean.
    """
    check_fraction(label_smoothing=label_smoothing)
    is_token = jnp.ones(targets.shape, bool) if is_token is None else is_token
    targets = _in_range(targets, is_token, logits.shape[-1])
    # Cleared before, not after: a NaN times a gradient of 0 would be NaN.
    logits = jnp.where(is_token[..., None], at_least_float32(logits), 0)
    log_probs = jax.nn.log_softmax(logits)
    surprise = -jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
    if label_smoothing:
        surprise = (1 - label_smoothing) * surprise - label_smoothing * log_probs.mean(axis=-1)
    return surprise.sum(where=is_token) / jnp.maximum(is_token.sum(), 1).astype(surprise.dtype)


def _in_range(targets, is_token, vocab_size: int):
    """The targets, and 0 for padding; a negative one would be counted from the end, silently."""
    largest = min(vocab_size - 1, jnp.iinfo(targets.dtype).max)  # there may be more tokens than 8 bits can count
    outside = is_token & ((targets < 0) | (targets > largest))
    expected = f"0 to {vocab_size - 1}, as there are {vocab_size} logits. To leave one out, use is_token."
    return jnp.where(is_token, refuse(targets, outside, "targets", expected), 0)


def next_token_loss(model, batch: tuple, key=None) -> Float[Array, ""]:
    r"""Return the mean cross-entropy of a language model on a batch of texts, in nats per token.

    Implements `eq-decoder-loss`; Radford et al. (2018), equation 1, as a mean.

    **Arguments**

    - `model`: such as a `Decoder`; from tokens, `(batch, seq)`, to logits, `(batch, seq, vocab_size)`.
    - `batch`: inputs and targets, each `(batch, seq)`, and perhaps `is_token`, of the same shape, `False` where the
      target is padding.
    - `key`: random key for dropout; `None` for none.
    """
    inputs, *rest = batch
    return cross_entropy(model(inputs, key=key), *rest)


def corpus_loss(model, windows: tuple, *, batch_size: int = 64) -> float:
    r"""Return the mean cross-entropy of a language model on a whole text, in nats per token.

    **Arguments** the model; windows as `consecutive_windows` returns them: inputs, targets and `is_token`, each
    `(windows, seq)`; how many of them to read at a time. **Returns** the mean over all tokens. **Raises** `ValueError`
    if there are no windows, or nothing but padding in them; `TypeError` if they are not three arrays.
    """
    if len(windows) != 3:
        raise TypeError(
            f"windows are {len(windows)} arrays; expected 3, inputs, targets and is_token: see consecutive_windows."
        )
    check_positive(windows=len(windows[0]), batch_size=batch_size)
    total, count = 0.0, 0
    for start in range(0, len(windows[0]), batch_size):
        batch = tuple(array[start : start + batch_size] for array in windows)
        tokens = int(batch[2].sum())
        total += tokens * float(_compiled_loss(model, batch))
        count += tokens
    if not count:
        raise ValueError("windows hold no token that counts; expected is_token to be True for at least one target.")
    return total / count


_compiled_loss = eqx.filter_jit(next_token_loss)


def perplexity(nats_per_token: float) -> float:
    r"""Return the number of equally likely tokens among which a model might as well have chosen blindly.

    Implements `eq-decoder-perplexity`; Jelinek et al. (1977). **Arguments** the mean cross-entropy, in nats per token.
    **Returns** infinity if it is too large for a float, beyond 709 nats.
    """
    nats = as_number("nats_per_token", nats_per_token, "1.5")
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


def bits_per_character(nats_per_token: float, num_tokens: int, num_characters: int) -> float:
    r"""Return the loss in bits per character, which compares models whatever their tokens are.

    Implements `eq-decoder-bits`. **Arguments** the mean cross-entropy, in nats per token, and how many tokens and how
    many characters the text has that it was measured on. **Raises** `ValueError` if a number is below 1.
    """
    check_positive(num_tokens=num_tokens, num_characters=num_characters)
    return as_number("nats_per_token", nats_per_token, "1.5") * num_tokens / num_characters / math.log(2)
