"""Searching for a likely text: beam search, with a cache, as one compiled loop (chapter 06)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from plainformer.checks import NonNegative, Positive, checked
from plainformer.data.lists import check_list
from plainformer.generation.decoding import LanguageModel, check_finite, log_probabilities, padded_prompts, stop_ids


class Hypothesis(NamedTuple):
    """A text that beam search found: `tokens`, the stop token included; its `log_prob`, in nats; its `score`."""

    tokens: list[int]
    log_prob: float
    score: float


@checked
def beam_search(
    model: LanguageModel,
    prompt: Sequence[int],
    max_new_tokens: Positive,
    *,
    beam_width: Positive,
    length_power: NonNegative = 1.0,
    stop_tokens: Sequence[int] = (),
) -> list[Hypothesis]:
    r"""Search for likely continuations: keep the best few beginnings, extend each by every token, keep the best few.

    Implements `eq-decoder-beam`; Graves (2012), section 2.6; the score is `eq-decoder-length-norm`, of the form of Wu
    et al. (2016), section 7, without their constant. With `beam_width=1` it is greedy search; with a beam as wide as
    there are texts, it is exhaustive.

    **Arguments**

    - `prompt`: a single one; all else as for `generate`.
    - `beam_width`: how many hypotheses are kept.
    - `length_power`: the score is the log-probability divided by this power of the number of new tokens: 1 for the mean
      per token, 0 for the log-probability itself, which prefers short texts.

    **Returns** up to `beam_width` hypotheses, best first. Those that end in a stop token stay in the beam as long as
    their score is among the best, and are not extended.
    """
    check_list("prompt", prompt, "ids, such as [1, 2]")
    if len(prompt) and np.ndim(prompt[0]):
        raise TypeError("prompt is a list of prompts; expected a single one: search for each in turn.")
    tokens, positions = padded_prompts(model, [prompt], max_new_tokens)
    if length_power * math.log2(max_new_tokens) >= 128:
        what = f"{max_new_tokens} to this power is too large for 32 bits, and all scores would be 0"
        raise ValueError(f"length_power is {length_power}; expected a smaller number, such as 1: {what}.")
    stop = stop_ids(stop_tokens, model.config.vocab_size)
    beam = _search(model, tokens, positions, max_new_tokens, beam_width, jnp.asarray(length_power, float), stop)
    written, log_probs, lengths, _, scores = map(np.asarray, beam)
    check_finite(scores.tolist())
    # In the first steps there are fewer texts than places; places that never got one have the score -inf.
    order = [place for place in np.argsort(-scores, kind="stable") if np.isfinite(scores[place])]
    return [
        Hypothesis(written[place, : lengths[place]].tolist(), float(log_probs[place]), float(scores[place]))
        for place in order
    ]


class _Beam(NamedTuple):
    """The texts in the beam: what was written, its log-probability and length, whether it has ended, its score."""

    written: Int[Array, "beam max_new_tokens"]
    log_probs: Float[Array, " beam"]
    lengths: Int[Array, " beam"]
    ended: Bool[Array, " beam"]
    scores: Float[Array, " beam"]


def _advance(step, beam: _Beam, next_log_probs, length_power, stop):
    """The best texts among all that extend one of the beam by a token, and those in it that have ended.

    Returns which text of the beam each of them extends, its newest token, and the new beam.
    """
    beam_width, vocab_size = next_log_probs.shape
    longer = jnp.where(beam.ended[:, None], -jnp.inf, beam.log_probs[:, None] + next_log_probs)
    as_it_is = jnp.where(beam.ended, beam.log_probs, -jnp.inf)[:, None]
    log_probs = jnp.concatenate([longer, as_it_is], axis=1)
    lengths = jnp.where(jnp.arange(vocab_size + 1) < vocab_size, step + 1, beam.lengths[:, None])
    scores = log_probs / jnp.maximum(lengths, 1).astype(float) ** length_power
    best, places = jax.lax.top_k(scores.reshape(-1), beam_width)
    parents, token = places // (vocab_size + 1), places % (vocab_size + 1)
    is_new = token < vocab_size
    # An ended text writes nothing; the token that it feeds to the model does not matter.
    token = jnp.where(is_new, token, 0).astype(jnp.int32)
    written = beam.written[parents]
    written = jnp.where(is_new[:, None], written.at[:, step].set(token), written)
    ended = ~is_new | (token[:, None] == stop).any(axis=1)
    return parents, token, _Beam(written, log_probs.reshape(-1)[places], lengths.reshape(-1)[places], ended, best)


@eqx.filter_jit
def _search(model, tokens, positions, max_new_tokens, beam_width, length_power, stop):
    x, cache = model.extend(tokens, model.make_cache(tokens.shape[1] + max_new_tokens - 1, batch=(1,)), positions)
    cache = tuple(part.select(jnp.zeros(beam_width, int)) for part in cache)
    last_position = jnp.repeat(positions[:, -1:], beam_width, axis=0)
    next_log_probs = jnp.repeat(log_probabilities(model.logits(x[:, -1:])[:, 0]), beam_width, axis=0)
    beam = _Beam(
        written=jnp.zeros((beam_width, max_new_tokens), jnp.int32),
        # All places hold the empty text at first. One copy of it is enough.
        log_probs=jnp.where(jnp.arange(beam_width) == 0, 0.0, -jnp.inf),
        lengths=jnp.zeros(beam_width, jnp.int32),
        ended=jnp.zeros(beam_width, bool),
        scores=jnp.zeros(beam_width),
    )

    def going_on(state):
        step, _, _, beam = state
        return (step < max_new_tokens) & ~beam.ended.all()

    def go_on(state):
        step, token, cache, beam = state
        x, cache = model.extend(token[:, None], cache, last_position + step)
        next_log_probs = log_probabilities(model.logits(x)[:, 0])
        parents, token, beam = _advance(step, beam, next_log_probs, length_power, stop)
        return step + 1, token, tuple(part.select(parents) for part in cache), beam

    _, token, beam = _advance(0, beam, next_log_probs, length_power, stop)
    *_, beam = jax.lax.while_loop(going_on, go_on, (jnp.asarray(1), token, cache, beam))
    return beam
