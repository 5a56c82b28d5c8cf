"""Continuing a text: one distribution after another, drawn from, with a cache, as one compiled loop (chapter 06)."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import NonNegative, Number, Positive, checked
from plainformer.generation.decoding import LanguageModel, check_finite, log_probabilities, padded_prompts, stop_ids
from plainformer.tokens.tokens import next_token_pairs

FLOAT32_MAX = float(np.finfo(np.float32).max)
Logits = Float[Array, " vocab_size"]
TopP = Annotated[float, Number(lambda p: 0 < p <= 1, "a probability above 0 and at most 1, or None for all tokens")]


@checked
def next_token_probabilities(
    logits: Logits, *, temperature: NonNegative = 1.0, top_k: Positive | None = None, top_p: TopP | None = None
) -> Float[Array, " vocab_size"]:
    r"""Turn logits into the distribution that the next token is drawn from.

    Implements `eq-decoder-temperature`, then `eq-decoder-top-k` (Fan et al., 2018), then
    `eq-decoder-top-p` (Holtzman et al., 2020, section 3.1), each renormalised.

    **Arguments**

    - `temperature`: what logits are divided by. At 0 the most likely tokens share everything equally.
    - `top_k`: how many of the most likely tokens stay; what ties with the last of them stays, too. `None` for all.
    - `top_p`: as few of the most likely tokens stay as have this probability together, at least one, and what ties with
      the last. `None` for all.
    """
    kept = _adjusted(at_least_float32(logits), min(temperature, FLOAT32_MAX), top_k, top_p)
    return jax.nn.softmax(kept)


def _adjusted(logits: Logits, temperature, top_k: int | None, top_p) -> Logits:
    logits = at_temperature(logits, temperature)
    logits = logits if top_k is None else keep_top_k(logits, top_k)
    return logits if top_p is None else keep_top_p(logits, top_p)


def at_temperature(logits: Logits, temperature) -> Logits:
    """Divide logits by the temperature; at 0, all but the largest become -inf."""
    logits = logits - logits.max()  # so that no temperature, however small, makes an infinity of the largest
    # The largest stays 0, also where the temperature is 0 or rounded to it: all others are -inf then. And what is -inf
    # stays so, also where the temperature is so large that dividing by it is multiplying by 0.
    return jnp.where((logits == 0) | (logits == -jnp.inf), logits, logits / temperature)


def keep_top_k(logits: Logits, top_k: int) -> Logits:
    """Put -inf in place of all but the `top_k` largest logits."""
    check_top_k(top_k, logits.shape[0])
    smallest = jax.lax.top_k(logits, top_k)[0][-1]
    return jnp.where(logits >= smallest, logits, -jnp.inf)


def check_top_k(top_k: int, vocab_size: int) -> None:
    """Raise `ValueError` if there are fewer tokens than shall stay."""
    if top_k > vocab_size:
        raise ValueError(f"top_k is {top_k}; expected at most {vocab_size}, the number of tokens.")


def keep_top_p(logits: Logits, top_p) -> Logits:
    """Put -inf in place of all but the largest logits whose probabilities together reach `top_p`."""
    top_p = jnp.asarray(top_p, logits.dtype)
    descending = jnp.sort(logits, descending=True)
    probabilities = jax.nn.softmax(descending)
    before = jnp.cumsum(probabilities) - probabilities  # of all that are likelier: below p, the token is needed
    # At 1, rounded sums would cut off a tail that should stay; at what is rounded to 0, all but the first one go.
    smallest = jnp.where((before < top_p) | (top_p == 1), descending, descending[0]).min()
    return jnp.where(logits >= smallest, logits, -jnp.inf)


def sequence_log_probs(model, tokens) -> Float[Array, " seq_minus_1"]:
    r"""Return the log-probability that a model gives to each token of a text, after those before it.

    Implements `eq-decoder-factorisation`: their sum is the log-probability of the text, given its first token.
    **Returns** one number for each token but the first, in nats.
    """
    inputs, targets = next_token_pairs(tokens)
    log_probs = log_probabilities(model(inputs))
    return jnp.take_along_axis(log_probs, targets[:, None], axis=1)[:, 0]


class Continuation(NamedTuple):
    """What a model wrote: `tokens`, without the prompt and with the stop token; the `log_probs` of each, in nats;
    whether it was `stopped` by a token."""

    tokens: list[int]
    log_probs: list[float]
    stopped: bool


@checked
def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: Positive,
    *,
    temperature: NonNegative = 1.0,
    top_k: Positive | None = None,
    top_p: TopP | None = None,
    stop_tokens: Sequence[int] = (),
    key: PRNGKeyArray | None = None,
) -> list[Continuation]:
    r"""Continue each prompt, token after token, each drawn from `next_token_probabilities` and fed back.

    Implements `eq-decoder-ancestral`. The keys and values of what was read are cached. Compiled once for each number of
    prompts, length of the longest, `max_new_tokens`, number of stop tokens, `top_k` and choice of method.

    **Arguments**

    - `model`: a `Decoder`, or what has its methods `make_cache`, `extend` and `logits`.
    - `prompts`: each a list of at least one id; they may differ in length.
    - `max_new_tokens`: how many to write at most. The last one is never read, so the longest prompt may have up to
      `context_len - max_new_tokens + 1`.
    - `temperature`, `top_k`, `top_p`: as for `next_token_probabilities`; at temperature 0, greedy search: the most
      likely token, the first of those that tie.
    - `stop_tokens`: ids after which a text ends.
    - `key`: random key, not needed at temperature 0. Each prompt has its own stream: what else is in the list does not
      change what is drawn for it.

    **Returns** one `Continuation` per prompt. Its log-probabilities are those of the model itself, temperature 1 and
    all tokens allowed.
    """
    tokens, positions = padded_prompts(model, prompts, max_new_tokens)
    if key is None and temperature != 0:
        raise TypeError("key is None; expected a random key, such as jax.random.key(0), or temperature=0.")
    check_top_k(top_k or 1, model.config.vocab_size)
    key = jax.random.key(0) if key is None else key  # never drawn from
    stop = stop_ids(stop_tokens, model.config.vocab_size)
    # 0 picks another method, so it is a part of the program; other temperatures are mere numbers in it, as is top_p.
    dividing = None if temperature == 0 else jnp.asarray(min(temperature, FLOAT32_MAX), float)
    method = dividing, top_k, None if top_p is None else jnp.asarray(top_p, float)
    found = _generate(model, tokens, positions, max_new_tokens, method, stop, key)
    rows = zip(*map(np.asarray, found), strict=True)
    texts = [Continuation(ids[:end].tolist(), logs[:end].tolist(), bool(ended)) for ids, logs, end, ended in rows]
    check_finite(number for text in texts for number in text.log_probs)
    return texts


def _pick(key, logits, step, method):
    """Draw one token from its logits, and return its log-probability in the model's own distribution."""
    temperature, top_k, top_p = method
    logits = at_least_float32(logits)
    if temperature is None:
        token = logits.argmax()
    else:
        token = jax.random.categorical(jax.random.fold_in(key, step), _adjusted(logits, temperature, top_k, top_p))
    return token.astype(jnp.int32), log_probabilities(logits)[token]


@eqx.filter_jit
def _generate(model, tokens, positions, max_new_tokens, method, stop, key):
    batch, longest = tokens.shape
    keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(batch))
    pick = jax.vmap(_pick, in_axes=(0, 0, None, None))
    x, caches = model.extend(tokens, model.make_cache(longest + max_new_tokens - 1, batch=(batch,)), positions)
    token, log_prob = pick(keys, model.logits(x[:, -1:])[:, 0], 0, method)
    written = jnp.zeros((batch, max_new_tokens), jnp.int32).at[:, 0].set(token)
    log_probs = jnp.zeros((batch, max_new_tokens), log_prob.dtype).at[:, 0].set(log_prob)

    def has_stopped(token):
        return (token[:, None] == stop).any(axis=1)

    def going_on(state):
        step, *_, stopped = state
        return (step < max_new_tokens) & ~stopped.all()

    def write(state):
        step, token, caches, written, log_probs, lengths, stopped = state
        x, caches = model.extend(token[:, None], caches, positions[:, -1:] + step)
        token, log_prob = pick(keys, model.logits(x)[:, 0], step, method)
        written = jax.lax.dynamic_update_slice_in_dim(written, token[:, None], step, 1)
        log_probs = jax.lax.dynamic_update_slice_in_dim(log_probs, log_prob[:, None], step, 1)
        lengths = jnp.where(stopped, lengths, step + 1)
        return step + 1, token, caches, written, log_probs, lengths, stopped | has_stopped(token)

    lengths = jnp.ones(batch, jnp.int32)
    state = (jnp.asarray(1), token, caches, written, log_probs, lengths, has_stopped(token))
    *_, written, log_probs, lengths, stopped = jax.lax.while_loop(going_on, write, state)
    return written, log_probs, lengths, stopped
