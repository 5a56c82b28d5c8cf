"""Continuing a text: one distribution after another, drawn from, with a cache, as one compiled loop (chapter 06).

A model here is anything with three methods, such as `Decoder`: `new_cache(capacity)`, `extend(tokens, cache,
positions)` and `logits(rows)`.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from plainformer.blocks.layers import in_single_precision
from plainformer.checks import as_floats, as_number, check_list, check_positive, check_token_ids
from plainformer.tokens.tokens import next_token_pairs

LARGEST = float(np.finfo(np.float32).max)  # in 32 bits, which is what computations here are in


def next_token_probabilities(
    logits: Float[Array, " vocab_size"],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Array, " vocab_size"]:
    r"""Turn logits into the distribution that the next token is drawn from.

    Implements `eq-decoder-temperature`, then `eq-decoder-top-k` (Fan et al., 2018), then
    `eq-decoder-top-p` (Holtzman et al., 2020, section 3.1), each renormalised.

    **Arguments**

    - `logits`: one number per token of the vocabulary, `(vocab_size,)`.
    - `temperature`: what logits are divided by, at least 0. At 0 the most likely tokens share everything equally.
    - `top_k`: how many of the most likely tokens stay; what ties with the last of them stays, too. `None` for all.
    - `top_p`: as few of the most likely tokens stay as have this probability together, above 0 and at most 1; at least
      one does, and so does what ties with the last. `None` for all.

    **Returns** probabilities, `(vocab_size,)`, in at least 32 bits.

    **Raises** `ValueError` if a number is out of range or `logits` is no vector.
    """
    logits = in_single_precision(as_floats("logits", logits, vocab_size=None))
    _check_choices(temperature, top_k, top_p, logits.shape[0])
    return jax.nn.softmax(_adjusted(logits, min(float(temperature), LARGEST), top_k, top_p))


def sequence_log_probs(model, tokens) -> Float[Array, " seq_minus_1"]:
    r"""Give the log-probability that a model gives to each token of a text, after those before it.

    Implements `eq-decoder-factorisation`: their sum is the log-probability of the text, given its first token.

    **Arguments** the model, and the ids of a text, at least two. **Returns** one number for each token but the first,
    in nats, at most 0. **Raises** `ValueError` if there are fewer than two tokens or more than the context holds.
    """
    inputs, targets = next_token_pairs(tokens)
    log_probs = log_probabilities(model(inputs))
    return jnp.take_along_axis(log_probs, targets[:, None], axis=1)[:, 0]


def log_probabilities(logits: Float[Array, "*rows vocab_size"]) -> Float[Array, "*rows vocab_size"]:
    """Give the logarithms of the probabilities, in at least 32 bits: in 16, their sum would be off after a few."""
    return jax.nn.log_softmax(in_single_precision(logits))


def _check_choices(temperature, top_k, top_p, vocab_size: int) -> None:
    if not 0 <= as_number("temperature", temperature, "0.8") < math.inf:
        raise ValueError(f"temperature is {temperature}; expected at least 0, such as 1, which changes nothing.")
    if top_k is not None:
        check_positive(top_k=top_k)
        if top_k > vocab_size:
            raise ValueError(f"top_k is {top_k}; expected at most {vocab_size}, the number of tokens.")
    if top_p is not None and not 0 < as_number("top_p", top_p, "0.9") <= 1:
        raise ValueError(f"top_p is {top_p}; expected a probability above 0 and at most 1; None for all tokens.")


def _adjusted(logits, temperature, top_k, top_p):
    """Logits of the tokens that stay, divided by the temperature; -inf for the others."""
    logits = logits - logits.max()  # so that no temperature, however small, makes an infinity of the largest
    # The largest stays 0, also where the temperature is 0 or rounded to it: all others are -inf then. And what is -inf
    # stays so, also where the temperature is so large that dividing by it is multiplying by 0.
    logits = jnp.where((logits == 0) | (logits == -jnp.inf), logits, logits / temperature)
    if top_k is not None:
        smallest = jax.lax.top_k(logits, top_k)[0][-1]
        logits = jnp.where(logits >= smallest, logits, -jnp.inf)
    if top_p is not None:
        top_p = jnp.asarray(top_p, logits.dtype)
        descending = jnp.sort(logits, descending=True)
        probabilities = jax.nn.softmax(descending)
        before = jnp.cumsum(probabilities) - probabilities  # of all that are likelier: below p, the token is needed
        # At 1, rounded sums would cut off a tail that should stay; at what is rounded to 0, all but the first one go.
        smallest = jnp.where((before < top_p) | (top_p == 1), descending, descending[0]).min()
        logits = jnp.where(logits >= smallest, logits, -jnp.inf)
    return logits


class Continuation(NamedTuple):
    """What a model wrote: `tokens`, without the prompt and with the stop token; the `log_probs` of each, in nats;
    whether it was `stopped` by a token."""

    tokens: list[int]
    log_probs: list[float]
    stopped: bool


def generate(
    model,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_tokens: Sequence[int] = (),
    key: PRNGKeyArray | None = None,
) -> list[Continuation]:
    r"""Continue each prompt, token after token, each drawn from `next_token_probabilities` and fed back.

    Implements `eq-decoder-ancestral`. The keys and values of what was read are cached. Compiled once for each number of
    prompts, length of the longest, `max_new_tokens`, number of stop tokens, `top_k` and choice of method.

    **Arguments**

    - `model`: a `Decoder`, or what has its methods `new_cache`, `extend` and `logits`.
    - `prompts`: a list of prompts, each a list of at least one id; they may differ in length.
    - `max_new_tokens`: how many tokens to write at most. The last of them is never read, so the longest prompt may
      have up to `context_len - max_new_tokens + 1`.
    - `temperature`, `top_k`, `top_p`: as for `next_token_probabilities`; at temperature 0, greedy search: the most
      likely token, the first of those that tie.
    - `stop_tokens`: ids after which a text ends.
    - `key`: random key, not needed at temperature 0. Each prompt has its own stream: what else is in the list does not
      change what is drawn for it.

    **Returns** one `Continuation` per prompt. Its log-probabilities are those of the model itself, temperature 1 and
    all tokens allowed.

    **Raises** `ValueError` if a prompt is empty, a prompt and its continuation are longer than the context, a number is
    out of range, or the model gives NaN; `TypeError` if `prompts` is a single prompt, or a key is missing.
    """
    tokens, positions = padded_prompts(model, prompts, max_new_tokens)
    vocab_size = model.config.vocab_size
    _check_choices(temperature, top_k, top_p, vocab_size)
    if key is None:
        if temperature != 0:
            raise TypeError("key is None; expected a random key, such as jax.random.key(0), or temperature=0.")
        key = jax.random.key(0)  # never drawn from
    stop = stop_ids(stop_tokens, vocab_size)
    # 0 picks another method, so it is a part of the program; other temperatures are mere numbers in it, as is top_p.
    # top_k shapes the program, and has to be Python's own number, not NumPy's.
    method = (
        None if temperature == 0 else jnp.asarray(min(float(temperature), LARGEST), float),
        None if top_k is None else int(top_k),
        None if top_p is None else jnp.asarray(top_p, float),
    )
    written, log_probs, lengths, stopped = _generate(model, tokens, positions, int(max_new_tokens), method, stop, key)
    rows = zip(np.asarray(written), np.asarray(log_probs), np.asarray(lengths), np.asarray(stopped), strict=True)
    found = [Continuation(row[:end].tolist(), logs[:end].tolist(), bool(ended)) for row, logs, end, ended in rows]
    refuse_nan(number for each in found for number in each.log_probs)
    return found


def refuse_nan(log_probs: Iterable[float]) -> None:
    """Raise `ValueError` if a model gave no numbers: what was chosen by them would be no text of the model."""
    if any(map(math.isnan, log_probs)):
        raise ValueError(
            "The model gives NaN as the log-probability of a token; expected numbers. Its weights probably hold NaN, as "
            "after a training that diverged: load an earlier checkpoint, or train with a smaller learning rate."
        )


def stop_ids(stop_tokens, vocab_size: int) -> Int[Array, " num_stop_tokens"]:
    """Give the stop tokens as an array; raise as `check_token_ids`, and `TypeError` for a set or what is no list."""
    check_list("stop_tokens", stop_tokens, "ids after which a text ends, such as [0]; [] for none")
    return jnp.asarray(check_token_ids(stop_tokens, vocab_size), jnp.int32)


def padded_prompts(model, prompts, max_new_tokens: int):
    """Give the prompts as a matrix of ids, padded on the left, and the position of each id in its text, or -1."""
    check_positive(max_new_tokens=max_new_tokens)
    check_list("prompts", prompts, "prompts, each a list of ids, such as [[1, 2]]")
    is_single = getattr(prompts, "ndim", 2) == 1 or (len(prompts) and np.ndim(prompts[0]) == 0)
    if is_single and not isinstance(prompts[0], str):
        raise TypeError("prompts is a single prompt; expected a list of them: pass [prompt].")
    if not len(prompts):
        raise ValueError("There are no prompts; expected at least one.")
    prompts = [check_token_ids(prompt, model.config.vocab_size) for prompt in prompts]
    longest = max(map(len, prompts))
    for number, prompt in enumerate(prompts):
        if not prompt:
            raise ValueError(f"prompts[{number}] is empty; expected at least one token to start from.")
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


def _pick(key, logits, step, method):
    """Draw one token from its logits, and give its log-probability in the model's own distribution."""
    temperature, top_k, top_p = method
    logits = in_single_precision(logits)
    if temperature is None:
        token = logits.argmax()
    else:
        token = jax.random.categorical(jax.random.fold_in(key, step), _adjusted(logits, temperature, top_k, top_p))
    return token.astype(jnp.int32), log_probabilities(logits)[token]


@eqx.filter_jit
def _generate(model, tokens, positions, max_new_tokens, method, stop, key):
    num_texts, longest = tokens.shape
    keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(num_texts))
    caches = model.new_cache(longest + max_new_tokens - 1, num_texts=num_texts)
    pick = jax.vmap(_pick, in_axes=(0, 0, None, None))
    rows, caches = model.extend(tokens, caches, positions)
    logits = model.logits(rows[:, -1])
    token, log_prob = pick(keys, logits, 0, method)
    written = jnp.zeros((num_texts, max_new_tokens), jnp.int32).at[:, 0].set(token)
    log_probs = jnp.zeros((num_texts, max_new_tokens), log_prob.dtype).at[:, 0].set(log_prob)
    lengths = jnp.ones(num_texts, jnp.int32)

    def has_stopped(token):
        return (token[:, None] == stop[None, :]).any(axis=1)

    def going_on(state):
        step, *_, stopped = state
        return (step < max_new_tokens) & ~stopped.all()

    def write(state):
        step, token, caches, written, log_probs, lengths, stopped = state
        rows, caches = model.extend(token[:, None], caches, positions[:, -1:] + step)
        token, log_prob = pick(keys, model.logits(rows[:, 0]), step, method)
        written = jax.lax.dynamic_update_slice_in_dim(written, token[:, None], step, 1)
        log_probs = jax.lax.dynamic_update_slice_in_dim(log_probs, log_prob[:, None], step, 1)
        lengths = jnp.where(stopped, lengths, step + 1)
        return step + 1, token, caches, written, log_probs, lengths, stopped | has_stopped(token)

    state = (jnp.asarray(1), token, caches, written, log_probs, lengths, has_stopped(token))
    *_, written, log_probs, lengths, stopped = jax.lax.while_loop(going_on, write, state)
    return written, log_probs, lengths, stopped
