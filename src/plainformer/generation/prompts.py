"""Prompts, and what writes behind them: a list of ids or a text, one or several, as a padded matrix.

One prompt in, one result out; a list of prompts in, a list of results out. A prompt is a list of ids, or a string where
a tokenizer is given. A result says which `tokens` were written, without the prompt and with the token that stopped
them; their `text`, without this token, where a tokenizer is given; their `log_prob`; and whether a token `stopped`
them.

A language model here is anything with a `config` and three methods, such as `Decoder`: `make_cache(capacity, batch=…)`,
`extend(tokens, cache, positions)` and `logits(x)`.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from plainformer.data.lists import check_list, check_names, check_token_ids
from plainformer.tokens.hugging_face import HuggingFaceTokenizer
from plainformer.tokens.tokenizer import Tokenizer, encoder_of

Prompt = str | Sequence[int]
Prompts = list[str] | Sequence[Sequence[int]]

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


def read_prompts(
    prompts: Prompt | Prompts,
    vocab_size: int,
    tokenizer: Tokenizer | None = None,
    name: str = "prompts",
    allowed_special: Collection[str] = (),
) -> tuple[list[list[int]], bool]:
    """Return the ids of each prompt, and whether a single one was given in place of a list of them."""
    single = isinstance(prompts, str) and tokenizer is not None
    if not single:
        check_list(name, prompts, "ids, such as [1, 2], or of such lists")
        if not len(prompts):
            raise ValueError(f"{name} is empty; expected at least one token to start from.{_how_to_begin(tokenizer)}")
        single = not isinstance(prompts[0], str | Sequence) and not getattr(prompts[0], "shape", ())
    check_names("allowed_special", allowed_special, ordered=False)
    if tokenizer is None and allowed_special:
        raise ValueError(f"allowed_special is {allowed_special!r}, and there is no tokenizer: pass tokenizer=…, too.")
    encode = None if tokenizer is None else encoder_of(tokenizer, allowed_special)
    texts: Sequence[Any] = [prompts] if single else prompts
    places = [name] if single else [f"{name}[{place}]" for place in range(len(texts))]
    found = [encode(text) if isinstance(text, str) and encode is not None else text for text in texts]
    found = [check_token_ids(ids, vocab_size, place) for ids, place in zip(found, places, strict=True)]
    for ids, place in zip(found, places, strict=True):
        if not ids:
            raise ValueError(f"{place} is empty; expected at least one token to start from.{_how_to_begin(tokenizer)}")
    return found, single


def _how_to_begin(tokenizer: Tokenizer | None) -> str:
    """How a text begins before which nothing stands."""
    if tokenizer is None or not tokenizer.special:
        return ""
    first = next(iter(tokenizer.special))
    return f" A text begins behind what stands between texts, such as [tokenizer.special[{first!r}]]."


def check_tokenizer(tokenizer, vocab_size: int) -> None:
    """Raise unless this is a tokenizer with as many tokens as the model has, or `None`.

    Models that others trained may have rows of which their tokenizer knows nothing, to be as many as a machine likes.
    """
    if tokenizer is None:
        return
    if not isinstance(tokenizer, Tokenizer):
        what = type(tokenizer).__name__
        raise TypeError(f"tokenizer is of type {what}; expected a Vocabulary, a BytePairEncoder or one of your own.")
    if len(tokenizer) != vocab_size and not (
        isinstance(tokenizer, HuggingFaceTokenizer) and len(tokenizer) < vocab_size
    ):
        raise ValueError(
            f"The tokenizer has {len(tokenizer)} tokens; expected {vocab_size}, those of the model. Use the one that "
            "the model was trained with."
        )


def check_model(model, name: str = "model") -> None:
    """Raise `TypeError` unless a model is one that texts can be written with."""
    if not isinstance(model, LanguageModel):
        raise TypeError(
            f"{name} is of type {type(model).__name__}; expected one that writes, such as a Decoder, or what the "
            "condition_on of an encoder–decoder or models.changed returns."
        )


class Start(NamedTuple):
    """What writing starts from: prompts, padded on the left; where each id stands in its text, -1 for padding; and what
    `make_cache` needs."""

    tokens: Int[Array, "batch seq"]
    positions: Int[Array, "batch seq"]
    room: dict


def start_of(config, prompts: list[list[int]], max_new_tokens: int, *, can_slide: bool = False) -> Start:
    """Return prompts as a matrix, of one of a few lengths, so that few programs serve them all.

    Where more is to be read than `context_len`, a window slides over the text, if the model can do that.
    """
    context_len = config.context_len
    _check_start(prompts, getattr(config, "start_token", None))
    longest = max(map(len, prompts))
    slides = longest + max_new_tokens - 1 > context_len
    if slides and not can_slide:
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
    return Start(int32(tokens), int32(positions), room)


def prompts_of(start: Start) -> Int[Array, "batch seq"]:
    """Return the prompts as `adjust` reads them: -1 for padding."""
    return jnp.where(start.positions < 0, -1, start.tokens)


def _check_start(prompts: list[list[int]], start: int | None) -> None:
    """Raise `ValueError` unless each prompt begins with the token that the model's texts begin with."""
    for place, prompt in enumerate(prompts):
        if start is not None and prompt[0] != start:
            raise ValueError(
                f"prompts[{place}] begins with {prompt[0]}; expected the start token, {start}. Put it first."
            )


def int32(numbers) -> Int[Array, "*shape"]:
    """Return whole numbers as an array, without the program that `jnp.asarray` would compile for each shape."""
    return jax.device_put(np.asarray(numbers, np.int32))
