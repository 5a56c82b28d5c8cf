"""What sampling and beam search share: prompts as a padded matrix, stop tokens, log-probabilities.

A language model here is anything with a `config` and three methods, such as `Decoder`: `make_cache(capacity, batch=…)`,
`extend(tokens, cache, positions)` and `logits(x)`.
"""

import math
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import check_list, check_positive, check_token_ids

FLOAT32_MAX = float(np.finfo(np.float32).max)


@runtime_checkable
class LanguageModel(Protocol):
    """What a model must offer to be decoded from."""

    @property
    def config(self) -> Any:
        """With `vocab_size` and `context_len`."""

    def make_cache(self, capacity: int | None = None, *, batch: tuple[int, ...] = ()):
        """Make an empty cache."""

    def extend(self, tokens, cache, positions):
        """Read further tokens; return a row for each, and the longer cache."""

    def logits(self, x):
        """Turn such rows into logits."""


def log_probabilities(logits: Float[Array, "*batch vocab_size"]) -> Float[Array, "*batch vocab_size"]:
    """Return the logarithms of the probabilities, in at least 32 bits: in 16, their sum would be off after a few."""
    return jax.nn.log_softmax(at_least_float32(logits))


def check_finite(log_probs: Iterable[float]) -> None:
    """Raise `ValueError` if a model returned NaN: what was chosen by it would not be a text of the model."""
    if any(map(math.isnan, log_probs)):
        raise ValueError(
            "The model gives NaN as the log-probability of a token; expected numbers. Its weights probably hold NaN, "
            "as after a training that diverged: load an earlier checkpoint, or train with a smaller learning rate."
        )


def stop_ids(stop_tokens, vocab_size: int) -> Int[Array, " num_stop_tokens"]:
    """Return the stop tokens as an array; raise as `check_token_ids`, and `TypeError` if they are not a list."""
    check_list("stop_tokens", stop_tokens, "ids after which a text ends, such as [0]; [] for none")
    return jnp.asarray(check_token_ids(stop_tokens, vocab_size), jnp.int32)


def padded_prompts(
    model: LanguageModel, prompts, max_new_tokens: int
) -> tuple[Int[Array, "batch seq"], Int[Array, "batch seq"]]:
    """Return the prompts as a matrix of ids, padded on the left, and the position of each id in its text, or -1."""
    prompts = _checked_prompts(prompts, model.config.vocab_size)
    check_positive(max_new_tokens=max_new_tokens)
    longest = max(map(len, prompts))
    if longest + max_new_tokens - 1 > model.config.context_len:
        raise ValueError(
            f"The longest prompt has {longest} tokens, and {max_new_tokens} shall follow; expected at most "
            f"context_len={model.config.context_len} to read. Write fewer, or keep the last tokens of the prompt only."
        )
    tokens = np.zeros((len(prompts), longest), np.int32)
    positions = np.full((len(prompts), longest), -1, np.int32)
    for row, prompt in enumerate(prompts):
        tokens[row, longest - len(prompt) :] = prompt
        positions[row, longest - len(prompt) :] = range(len(prompt))
    return jnp.asarray(tokens), jnp.asarray(positions)


def _checked_prompts(prompts, vocab_size: int) -> list[list[int]]:
    check_list("prompts", prompts, "prompts, each a list of ids, such as [[1, 2]]")
    is_single = getattr(prompts, "ndim", 2) == 1 or (len(prompts) and np.ndim(prompts[0]) == 0)
    if is_single and not isinstance(prompts[0], str):
        raise TypeError("prompts is a single prompt; expected a list of them: pass [prompt].")
    if not len(prompts):
        raise ValueError("There are no prompts; expected at least one.")
    prompts = [check_token_ids(prompt, vocab_size) for prompt in prompts]
    for number, prompt in enumerate(prompts):
        if not prompt:
            raise ValueError(f"prompts[{number}] is empty; expected at least one token to start from.")
    return prompts
