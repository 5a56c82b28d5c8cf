"""What sampling and beam search share: prompts as a padded matrix, stop tokens, log-probabilities.

A language model here is anything with a `config` and three methods, such as `Decoder`: `make_cache(capacity, batch=…)`,
`extend(tokens, cache, positions)` and `logits(x)`.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from plainformer.attention.self_attention import at_least_float32
from plainformer.data.lists import check_list, check_token_ids

SHORTEST = 16  # to how many tokens a shorter prompt is padded; longer ones to the next power of two
NO_WINDOW = (
    "A window slides over a longer text only in `generate`, with a Decoder whose scheme goes by differences of "
    "positions alone, such as rotary; a scheme of your own says so by `can_slide = True`. With learned or sinusoidal "
    "positions, all vectors would change with every step."
)


@runtime_checkable
class LanguageModel(Protocol):
    """What a model must offer to be decoded from."""

    @property
    def config(self) -> Any:
        """With `vocab_size` and `context_len`."""

    def make_cache(self, capacity: int | None = None, *, batch: tuple[int, ...] = ()) -> tuple:
        """Make an empty cache: a tuple, for beam search of `KeyValueCache`, which the texts of a beam share."""

    def extend(self, tokens: Array, cache: Any, positions: Array) -> tuple[Array, Any]:
        """Read further tokens; return a row for each, and the longer cache."""

    def logits(self, x: Array) -> Array:
        """Turn such rows into logits."""


def log_probabilities(logits: Float[Array, "*batch vocab_size"]) -> Float[Array, "*batch vocab_size"]:
    """Return the logarithms of the probabilities, in at least 32 bits: in 16, their sum would soon be off."""
    return jax.nn.log_softmax(at_least_float32(logits))


def check_finite(log_probs: Iterable[float]) -> None:
    """Raise `ValueError` if a model returned NaN: what was chosen by it would not be a text of the model."""
    if any(map(math.isnan, log_probs)):
        raise ValueError(
            "The model gives NaN as the log-probability of a token; expected numbers. Its weights probably hold NaN, "
            "as after a training that diverged: load an earlier checkpoint, or train with a smaller learning rate."
        )


def stop_ids(stop_tokens, vocab_size: int) -> Int[Array, " num_stop_tokens"]:
    """Return the stop tokens as an array."""
    check_list("stop_tokens", stop_tokens, "ids after which a text ends, such as [0]; [] for none")
    return _int32(check_token_ids(stop_tokens, vocab_size, "stop_tokens"))


class Start(NamedTuple):
    """What writing starts from: prompts, padded on the left; where each id stands in its text, -1 for padding; and what
    `make_cache` needs."""

    tokens: Int[Array, "batch seq"]
    positions: Int[Array, "batch seq"]
    room: dict


def start_of(model: LanguageModel, prompts, max_new_tokens: int, *, may_slide: bool = False) -> Start:
    """Return prompts as a matrix, of one of a few lengths, so that few programs serve them all.

    Where more is to be read than `context_len`, a window slides over the text, if it may and the model can do that.
    """
    if not isinstance(model, LanguageModel):
        raise TypeError(
            f"model is of type {type(model).__name__}; expected one that writes, such as a Decoder, or what the "
            "condition_on of an encoder–decoder returns."
        )
    prompts, context_len = _checked_prompts(prompts, model.config.vocab_size), model.config.context_len
    _check_start(prompts, getattr(model.config, "start_token", None))
    longest = max(map(len, prompts))
    slides = longest + max_new_tokens - 1 > context_len
    if slides and not (may_slide and getattr(model, "can_slide", False)):
        raise ValueError(
            f"The longest prompt has {longest} tokens, and {max_new_tokens} shall follow; expected at most "
            f"context_len={context_len} to read. Write fewer, or keep the last tokens of the prompt only. {NO_WINDOW}"
        )
    if slides:
        prompts, longest = [prompt[-context_len:] for prompt in prompts], min(longest, context_len)
    length = min(max(SHORTEST, 2 ** (longest - 1).bit_length()), context_len)
    gaps = [length - len(prompt) for prompt in prompts]
    tokens = [[0] * gap + prompt for gap, prompt in zip(gaps, prompts, strict=True)]
    positions = [[-1] * gap + list(range(length - gap)) for gap in gaps]
    room = {"capacity": context_len, "sliding": True} if slides else {"capacity": length + max_new_tokens - 1}
    return Start(_int32(tokens), _int32(positions), room)


def _check_start(prompts: list[list[int]], start: int | None) -> None:
    """Raise `ValueError` unless each prompt begins with the token that the model's texts begin with."""
    for place, prompt in enumerate(prompts):
        if start is not None and prompt[0] != start:
            raise ValueError(
                f"prompts[{place}] begins with {prompt[0]}; expected the start token, {start}. Put it first."
            )


def _int32(numbers) -> Int[Array, "*shape"]:
    """Return an array of them, without the program that `jnp.asarray` would compile for each shape."""
    return jax.device_put(np.asarray(numbers, np.int32))


def _checked_prompts(prompts, vocab_size: int) -> list[list[int]]:
    check_list("prompts", prompts, "prompts, each a list of ids, such as [[1, 2]]")
    if not len(prompts):
        raise ValueError("There are no prompts; expected at least one.")
    if np.ndim(prompts[0]) == 0 and not isinstance(prompts[0], str):
        raise TypeError("prompts is a single prompt; expected a list of them: pass [prompt].")
    prompts = [check_token_ids(prompt, vocab_size, f"prompts[{place}]") for place, prompt in enumerate(prompts)]
    if [] in prompts:
        raise ValueError(f"prompts[{prompts.index([])}] is empty; expected at least one token to start from.")
    return prompts
