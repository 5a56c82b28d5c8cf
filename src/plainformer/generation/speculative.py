"""Writing with a small model that guesses and a large one that checks: speculative decoding (chapter on efficiency)."""

from collections.abc import Sequence
from typing import NamedTuple, Unpack, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plainformer.attention.cache import rewound
from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import NonNegative, Positive, checked
from plainformer.generation.prompts import (
    LanguageModel,
    Prompt,
    Prompts,
    Start,
    check_model,
    check_tokenizer,
    read_prompts,
    start_of,
)
from plainformer.generation.sampling import (
    Choice,
    Drawing,
    TopP,
    check_finite,
    choice_of,
    key_for,
    log_probabilities,
    numbers_of,
    own_key,
)
from plainformer.generation.stopping import stop_ids, text_of
from plainformer.tokens.tokenizer import Tokenizer


class Speculation(NamedTuple):
    """What was written: what a `Continuation` says of it, and how often the large model was asked, each time for
    several tokens at once."""

    tokens: list[int]
    text: str | None
    log_prob: float
    stopped: bool
    log_probs: list[float]
    num_calls: int


@checked
def accept_drafted(
    drafted: Int[Array, " drafted"],
    draft_probs: Float[Array, "drafted vocab_size"],
    probs: Float[Array, "drafted_and_1 vocab_size"],
    *,
    key: PRNGKeyArray,
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    r"""Accept as many drafted tokens as the large model would let pass, and draw the token after them.

    Implements `eq-efficiency-accept` and `eq-efficiency-residual`; Leviathan et al. (2023), algorithm 1.

    Args:
        drafted: the drafted tokens.
        draft_probs: the distribution that each was drawn from.
        probs: the large model's distribution at each of these places and at the one after them.
        key: random key.

    Returns:
        How many are accepted, and the next token. Together they are distributed as if the large model had drawn one
        token after the other.
    """
    places = jnp.arange(len(drafted))
    accept_key, next_key = jax.random.split(key)
    chance = probs[places, drafted] / draft_probs[places, drafted]
    accepted = jax.random.uniform(accept_key, (len(drafted),)) < chance
    count = jnp.cumprod(accepted).sum()
    # After the last drafted token there is no guess to make up for: as if the draft gave zero to every token.
    missing = jnp.maximum(probs - jnp.pad(draft_probs, ((0, 1), (0, 0))), 0)[count]
    # Two distributions that differ by rounding alone leave nothing; then any token of the large model will do.
    residual = jnp.where(missing.sum() > 0, missing, probs[count])
    return count.astype(jnp.int32), jax.random.categorical(next_key, jnp.log(residual)).astype(jnp.int32)


@overload
def speculative_generate(
    model: LanguageModel,
    draft: LanguageModel,
    prompts: Prompt,
    max_new_tokens: int,
    *,
    num_drafted: int = 4,
    **options: Unpack[Drawing],
) -> Speculation: ...


@overload
def speculative_generate(
    model: LanguageModel,
    draft: LanguageModel,
    prompts: Prompts,
    max_new_tokens: int,
    *,
    num_drafted: int = 4,
    **options: Unpack[Drawing],
) -> list[Speculation]: ...


@checked
def speculative_generate(
    model: LanguageModel,
    draft: LanguageModel,
    prompts: Prompt | Prompts,
    max_new_tokens: Positive,
    *,
    num_drafted: Positive = 4,
    temperature: NonNegative = 1.0,
    top_k: Positive | None = None,
    top_p: TopP | None = None,
    min_p: TopP | None = None,
    stop_tokens: Sequence[int | str] = (),
    tokenizer: Tokenizer | None = None,
    key: PRNGKeyArray | None = None,
):
    r"""Continue prompts as `generate` would by the large `model`, which is asked once for several tokens.

    Implements `eq-efficiency-speculative`; Leviathan et al. (2023). A small model, the `draft`,
    writes `num_drafted` tokens; the large one reads them all at once and says which of them may stay. What comes out is
    distributed exactly as what the large model alone writes; only the time depends on the draft. Prompts are continued
    one after the other.

    All arguments but the two below are as for `generate`. The prompt, what is written and what is drafted beyond it
    must fit into the `context_len` of both models.

    Args:
        draft: a model of the same vocabulary.
        num_drafted: how many tokens the draft writes at a time.

    Returns:
        A `Speculation`, or a list of them for a list of prompts.
    """
    check_model(model)
    check_model(draft, "draft")
    check_tokenizer(tokenizer, model.config.vocab_size)
    texts, single = read_prompts(prompts, model.config.vocab_size, tokenizer)
    _check_pair(model, draft, max(map(len, texts)), max_new_tokens, num_drafted)
    shorter = min(model.config, draft.config, key=lambda config: config.context_len)
    starts = [start_of(shorter, [text], max_new_tokens) for text in texts]
    choice = choice_of(temperature, top_k, top_p, min_p, model.config.vocab_size)
    stop, key = stop_ids(stop_tokens, model.config.vocab_size, tokenizer=tokenizer), key_for(choice, key)
    found = []
    for start, numbers in zip(starts, numbers_of(texts), strict=True):
        options = max_new_tokens, num_drafted, choice, stop, own_key(key, *numbers)
        found.append(_speculation(_speculate(model, draft, start, *options), max_new_tokens, tokenizer))
    return found[0] if single else found


def _speculation(found: "_Written", max_new_tokens: int, tokenizer) -> Speculation:
    """What was written, without what the last round wrote beyond the number asked for."""
    length = int(found.length)
    tokens, log_probs = (np.asarray(row)[: min(length, max_new_tokens)].tolist() for row in found[:2])
    check_finite(log_probs)
    stopped = bool(found.stopped) and length <= max_new_tokens
    text = text_of(tokens, stopped, tokenizer)
    return Speculation(tokens, text, sum(log_probs), stopped, log_probs, int(found.num_calls))


def _check_pair(model, draft, prompt_len: int, max_new_tokens: int, num_drafted: int) -> None:
    """Raise `ValueError` unless the two models fit together, and all that is read fits into them."""
    if draft.config.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"The draft has a vocabulary of {draft.config.vocab_size} tokens; expected {model.config.vocab_size}, "
            "those of the model: what one writes the other reads. Train both with one tokenizer."
        )
    needed = prompt_len + max_new_tokens + num_drafted
    for name, each in {"model": model, "draft": draft}.items():
        if needed > (longest := each.config.context_len):
            raise ValueError(
                f"{prompt_len} tokens, {max_new_tokens} more and {num_drafted} drafted are {needed}; expected at most "
                f"context_len={longest} of the {name}. Write fewer, or keep the last tokens of the prompt only."
            )


class _Written(NamedTuple):
    """The text so far, what the model says of each token, how long it is, whether a token stopped it; its last token;
    how often the model was asked; what both models have read."""

    written: Int[Array, " capacity"]
    log_probs: Float[Array, " capacity"]
    length: Int[Array, ""]
    stopped: Bool[Array, ""]
    last: Int[Array, ""]
    num_calls: Int[Array, ""]
    caches: tuple
    key: PRNGKeyArray

    def longer(self, new, log_probs, count, stop) -> dict:
        """The text with the first `count` of some new tokens behind it, as far as none of them stops it."""
        log_probs = log_probs.astype(self.log_probs.dtype)
        is_stop = (new[:, None] == stop).any(axis=1) & (jnp.arange(len(new)) < count)
        stopped = is_stop.any()
        return {
            "written": jax.lax.dynamic_update_slice(self.written, new, (self.length,)),
            "log_probs": jax.lax.dynamic_update_slice(self.log_probs, log_probs, (self.length,)),
            "length": self.length + jnp.where(stopped, is_stop.argmax().astype(jnp.int32) + 1, count),
            "stopped": stopped,
        }


@eqx.filter_jit
def _speculate(model, draft, start: Start, max_new_tokens, num_drafted, choice: Choice, stop, key) -> _Written:
    """Rounds of drafting and checking, until enough is written or a token stops the text."""
    num_read, first = start.tokens.shape[1] - 1, start.positions[0, -1]
    most, places = max_new_tokens + num_drafted, jnp.arange(num_drafted + 1, dtype=jnp.int32)

    def read_prompt(model):
        cache = model.make_cache(num_read + most, batch=(1,))
        return _read(model, start.tokens[0, :-1], cache, start.positions[0, :-1])[1]

    def one_round(state: _Written) -> _Written:
        key, draft_key, accept_key = jax.random.split(state.key, 3)
        position = first + state.length
        drafted, draft_probs, draft_cache = _draft(draft, state, position + places, choice, draft_key)
        tokens = jnp.concatenate([state.last[None], drafted])
        logits, cache = _read(model, tokens, state.caches[0], position + places)
        count, last = accept_drafted(drafted, draft_probs, _distribution(logits, choice), key=accept_key)
        new = jnp.append(drafted, 0).at[count].set(last)
        longer = state.longer(new, log_probabilities(logits)[places, new], count + 1, stop)
        length = num_read + state.length + count + 1
        caches = rewound(cache, length), rewound(draft_cache, length)
        return _Written(**longer, last=last, num_calls=state.num_calls + 1, caches=caches, key=key)

    zero, caches = jnp.zeros((), jnp.int32), (read_prompt(model), read_prompt(draft))
    state = _Written(
        jnp.zeros(most, jnp.int32), jnp.zeros(most), zero, zero > 0, start.tokens[0, -1], zero, caches, key
    )
    return jax.lax.while_loop(lambda state: (state.length < max_new_tokens) & ~state.stopped, one_round, state)


def _draft(draft, state: _Written, positions, choice: Choice, key):
    """The tokens that the draft writes behind a text, the distribution of each, and the draft's longer cache."""

    def guess(carry, position):
        token, cache = carry
        logits, cache = _read(draft, token[None], cache, position[None])
        probs = _distribution(logits, choice)[0]
        own = jax.random.fold_in(key, position)
        token = jax.random.categorical(own, jnp.log(probs)).astype(jnp.int32)
        return (token, cache), (token, probs)

    # One step more than is needed, so that the draft, too, has read all that it wrote.
    (_, cache), (drafted, probs) = jax.lax.scan(guess, (state.last, state.caches[1]), positions)
    return drafted[:-1], probs[:-1], cache


def _distribution(logits: Float[Array, "seq vocab_size"], choice: Choice) -> Float[Array, "seq vocab_size"]:
    """What each token is drawn from: at temperature 0, the likeliest alone."""
    logits = at_least_float32(logits)
    if choice.greedy:
        return jax.nn.one_hot(logits.argmax(axis=-1), logits.shape[-1], dtype=logits.dtype)
    return jax.nn.softmax(jax.vmap(choice.of)(logits))


def _read(model, tokens, cache, positions):
    """The logits after each of some tokens of one text, and the longer cache."""
    if not len(tokens):
        return None, cache
    x, cache = model.extend(tokens[None], cache, positions[None])
    return model.logits(x)[0], cache
