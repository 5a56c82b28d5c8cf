"""Writing with a small model that guesses and a large one that checks: speculative decoding (chapter 11)."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from plainformer.checks import Positive, PositiveFloat, checked
from plainformer.data.lists import check_token_ids
from plainformer.generation.decoding import LanguageModel


class Speculation(NamedTuple):
    """What was written: `tokens`, without the prompt; and how often the large model was asked, each time for several
    tokens at once."""

    tokens: list[int]
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

    **Arguments** the drafted tokens; the distribution that each was drawn from; the large model's distribution at each
    of these places and at the one after them; random key.

    **Returns** how many are accepted, and the next token. Together they are distributed as if the large model had drawn
    one token after the other.
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


@checked
def speculative_generate(
    model: LanguageModel,
    draft: LanguageModel,
    prompt: Sequence[int],
    max_new_tokens: Positive,
    *,
    num_drafted: Positive = 4,
    temperature: PositiveFloat = 1.0,
    key: PRNGKeyArray,
) -> Speculation:
    r"""Continue a prompt as `generate` would by the large `model`, which is asked once for several tokens.

    Implements `eq-efficiency-speculative`; Leviathan et al. (2023). A small model, the `draft`,
    writes `num_drafted` tokens; the large one reads them all at once and says which of them may stay. What comes out is
    distributed exactly as what the large model alone writes; only the time depends on the draft.

    **Arguments** as for `generate`, but for: `draft`, a model of the same vocabulary; `prompt`, the ids of a single
    one; `num_drafted`, how many tokens the draft writes at a time. The prompt, what is written and what is drafted
    beyond it must fit into the `context_len` of both.
    """
    prompt = check_token_ids(prompt, model.config.vocab_size, "prompt")
    _check_pair(model, draft, len(prompt), max_new_tokens, num_drafted)
    options = num_drafted, jnp.asarray(temperature, float), key
    tokens, num_calls = _speculate(model, draft, jnp.asarray(prompt, jnp.int32), max_new_tokens, *options)
    return Speculation(np.asarray(tokens)[:max_new_tokens].tolist(), int(num_calls))


def _check_pair(model, draft, prompt_len: int, max_new_tokens: int, num_drafted: int) -> None:
    """Raise `ValueError` unless the two models fit together, and all that is read fits into them."""
    if draft.config.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"The draft has a vocabulary of {draft.config.vocab_size} tokens; expected {model.config.vocab_size}, "
            "those of the model: what one writes the other reads. Train both with one tokenizer."
        )
    if not prompt_len:
        raise ValueError("prompt is empty; expected at least one token to start from.")
    longest = min(each.config.context_len for each in (model, draft))
    if (needed := prompt_len + max_new_tokens + num_drafted) > longest:
        raise ValueError(
            f"{prompt_len} tokens, {max_new_tokens} more and {num_drafted} drafted are {needed}; expected at most "
            f"context_len={longest}. Write fewer, or keep the last tokens of the prompt only."
        )


class _State(NamedTuple):
    """The text so far, how long it is, its last token, how often the model was asked; what both models have read."""

    written: Int[Array, " capacity"]
    length: Int[Array, ""]
    last: Int[Array, ""]
    num_calls: Int[Array, ""]
    caches: tuple
    key: PRNGKeyArray


@eqx.filter_jit
def _speculate(model, draft, prompt, max_new_tokens, num_drafted, temperature, key):
    """Rounds of drafting and checking, until enough is written."""
    start = len(prompt) - 1
    capacity = len(prompt) + max_new_tokens + num_drafted
    caches = tuple(_read(each, prompt[:-1], each.make_cache(capacity, batch=(1,)), 0)[1] for each in (model, draft))

    def distributions(model, tokens, cache, position):
        logits, cache = _read(model, tokens, cache, position)
        return jax.nn.softmax(logits / temperature), cache

    def one_round(state: _State) -> _State:
        key, draft_key, accept_key = jax.random.split(state.key, 3)
        position = start + state.length

        def guess(carry, step):
            token, cache = carry
            (probs,), cache = distributions(draft, token[None], cache, position + step)
            token = jax.random.categorical(jax.random.fold_in(draft_key, step), jnp.log(probs)).astype(jnp.int32)
            return (token, cache), (token, probs)

        # One step more than is needed, so that the draft, too, has read all that it wrote.
        (_, draft_cache), (guessed, draft_probs) = jax.lax.scan(
            guess, (state.last, state.caches[1]), jnp.arange(num_drafted + 1)
        )
        drafted, draft_probs = guessed[:-1], draft_probs[:-1]
        tokens = jnp.concatenate([state.last[None], drafted])
        probs, cache = distributions(model, tokens, state.caches[0], position)
        count, last = accept_drafted(drafted, draft_probs, probs, key=accept_key)
        new = jnp.append(drafted, 0).at[count].set(last)
        written = jax.lax.dynamic_update_slice(state.written, new, (state.length,))
        caches = _rewound((cache, draft_cache), position + count + 1)
        return _State(written, state.length + count + 1, last, state.num_calls + 1, caches, key)

    zero = jnp.zeros((), jnp.int32)
    state = _State(jnp.zeros(max_new_tokens + num_drafted, jnp.int32), zero, prompt[-1], zero, caches, key)
    state = jax.lax.while_loop(lambda state: state.length < max_new_tokens, one_round, state)
    return state.written, state.num_calls


def _read(model, tokens, cache, first):
    """The logits after each of some tokens of one text, which stand at `first` and after it, and the longer cache."""
    if not len(tokens):
        return None, cache
    x, cache = model.extend(tokens[None], cache, (first + jnp.arange(len(tokens)))[None])
    return model.logits(x)[0], cache


def _rewound(caches, length):
    """The caches, as if only `length` tokens had been read: what comes next takes the place of what was refused."""

    def lengths(caches):
        return [part.length for parts in caches for part in parts]

    return eqx.tree_at(lengths, caches, [length.astype(jnp.int32)] * len(lengths(caches)))
