"""Searching for a likely text: beam search, with a cache, as one compiled loop (chapter 06)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.checks import as_number, check_list, check_positive
from plainformer.generation.sampling import LARGEST, log_probabilities, padded_prompts, refuse_nan, stop_ids


class Hypothesis(NamedTuple):
    """A text that beam search found: `tokens`, the stop token included; its `log_prob`, in nats; its `score`."""

    tokens: list[int]
    log_prob: float
    score: float


def beam_search(
    model,
    prompt: Sequence[int],
    max_new_tokens: int,
    *,
    beam_width: int,
    length_power: float = 1.0,
    stop_tokens: Sequence[int] = (),
) -> list[Hypothesis]:
    r"""Search for likely continuations: keep the best few beginnings, extend each by every token, keep the best few.

    Implements `eq-decoder-beam`; Graves (2012), section 2.6; the score is `eq-decoder-length-norm`, of the form of Wu
    et al. (2016), section 7, without their constant. With `beam_width=1` it is greedy search; with a beam as wide as
    there are texts, it is exhaustive.

    **Arguments**

    - `model`, `prompt`, `max_new_tokens`, `stop_tokens`: as for `generate`, for a single prompt.
    - `beam_width`: how many hypotheses are kept.
    - `length_power`: the score is the log-probability divided by this power of the number of new tokens: 1 for the mean
      per token, 0 for the log-probability itself, which prefers short texts.

    **Returns** up to `beam_width` hypotheses, best first. Those that end in a stop token stay in the beam as long as
    their score is among the best, and are not extended.

    **Raises** as `generate`; `ValueError` if `beam_width` is below 1 or `length_power` negative or far too large.
    """
    check_positive(beam_width=beam_width)
    if not 0 <= as_number("length_power", length_power, "1.0") < float("inf"):
        raise ValueError(f"length_power is {length_power}; expected a finite number, at least 0.")
    check_list("prompt", prompt, "ids, such as [1, 2]")
    if len(prompt) and np.ndim(prompt[0]):
        raise TypeError("prompt is a list of prompts; expected a single one: search for each in turn.")
    tokens, positions = padded_prompts(model, [prompt], max_new_tokens)
    if length_power * math.log(max_new_tokens) > math.log(LARGEST):
        raise ValueError(
            f"length_power is {length_power}; expected a smaller number, such as 1: {max_new_tokens} to this power "
            "is too large for 32 bits, and all scores would be 0."
        )
    stop = stop_ids(stop_tokens, model.config.vocab_size)
    sizes = int(max_new_tokens), int(beam_width)  # known while compiling, as NumPy's numbers are not
    found = _search(model, tokens, positions, *sizes, jnp.asarray(length_power, float), stop)
    written, log_probs, lengths, scores = (np.asarray(each) for each in found)
    refuse_nan(scores.tolist())
    # In the first steps there are fewer texts than places; places that never got one have the score -inf.
    order = [beam for beam in np.argsort(-scores, kind="stable") if np.isfinite(scores[beam])]
    return [
        Hypothesis(written[beam, : lengths[beam]].tolist(), float(log_probs[beam]), float(scores[beam]))
        for beam in order
    ]


@eqx.filter_jit
def _search(model, tokens, positions, max_new_tokens, beam_width, length_power, stop):
    longest, vocab_size = tokens.shape[1], model.config.vocab_size
    cache = model.new_cache(longest + max_new_tokens - 1)
    rows, cache = model.extend(tokens, cache, positions)
    cache = tuple(part.select(jnp.zeros(beam_width, int)) for part in cache)
    position = jnp.repeat(positions[:, -1:], beam_width, axis=0)
    next_log_probs = jnp.repeat(log_probabilities(model.logits(rows[:, -1])), beam_width, axis=0)
    written = jnp.zeros((beam_width, max_new_tokens), jnp.int32)
    # All places hold the empty text at first. One copy of it is enough.
    log_probs = jnp.where(jnp.arange(beam_width) == 0, 0.0, -jnp.inf)
    lengths, ended = jnp.zeros(beam_width, jnp.int32), jnp.zeros(beam_width, bool)

    def choose(step, next_log_probs, written, log_probs, lengths, ended):
        """The best texts among all that extend a text of the beam by a token, and those in it that have ended."""
        longer = jnp.where(ended[:, None], -jnp.inf, log_probs[:, None] + next_log_probs)
        candidates = jnp.concatenate([longer, jnp.where(ended, log_probs, -jnp.inf)[:, None]], axis=1)
        new_lengths = jnp.where(jnp.arange(vocab_size + 1)[None, :] < vocab_size, step + 1, lengths[:, None])
        scores = candidates / jnp.maximum(new_lengths, 1).astype(float) ** length_power
        best, places = jax.lax.top_k(scores.reshape(-1), beam_width)
        beams, token = places // (vocab_size + 1), places % (vocab_size + 1)
        is_new = token < vocab_size
        # An ended text writes nothing; the token that it feeds to the model does not matter.
        token = jnp.where(is_new, token, 0).astype(jnp.int32)
        written = written[beams]
        written = jnp.where(is_new[:, None], written.at[:, step].set(token), written)
        ended = ~is_new | (token[:, None] == stop[None, :]).any(axis=1)
        return beams, token, written, candidates.reshape(-1)[places], new_lengths.reshape(-1)[places], ended, best

    def going_on(state):
        step, *_, ended, _ = state
        return (step < max_new_tokens) & ~ended.all()

    def advance(state):
        step, token, cache, written, log_probs, lengths, ended, _ = state
        rows, cache = model.extend(token[:, None], cache, position + step)
        next_log_probs = log_probabilities(model.logits(rows[:, 0]))
        beams, token, *rest = choose(step, next_log_probs, written, log_probs, lengths, ended)
        return step + 1, token, tuple(part.select(beams) for part in cache), *rest

    _, token, *rest = choose(0, next_log_probs, written, log_probs, lengths, ended)
    state = jax.lax.while_loop(going_on, advance, (jnp.asarray(1), token, cache, *rest))
    _, _, _, written, log_probs, lengths, _, scores = state
    return written, log_probs, lengths, scores
