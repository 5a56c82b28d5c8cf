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
from plainformer.generation.decoding import LanguageModel, Start, check_finite, log_probabilities, start_of, stop_ids


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

    **Example**: the first text is likelier than the second, which is what greedy search finds.

    >>> decoder, tokenizer = pf.load_pretrained("decoder")
    >>> found = pf.beam_search(decoder, tokenizer.encode("The "), 12, beam_width=2)
    >>> [(tokenizer.decode(text.tokens), round(text.log_prob, 1)) for text in found]
    [('standard lib', -6.2), ('standard typ', -6.4)]
    """
    check_list("prompt", prompt, "ids, such as [1, 2]")
    if len(prompt) and np.ndim(prompt[0]):
        raise TypeError("prompt is a list of prompts; expected a single one: search for each in turn.")
    return search_all(model, [prompt], max_new_tokens, beam_width, length_power, stop_tokens)[0]


@checked
def search_all(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: Positive,
    beam_width: Positive,
    length_power: NonNegative = 1.0,
    stop_tokens: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """Return what `beam_search` would find for each of several prompts, searched for side by side."""
    start = start_of(model, prompts, max_new_tokens)
    if length_power * math.log2(max_new_tokens) >= 128:
        what = f"{max_new_tokens} to this power is too large for 32 bits, and all scores would be 0"
        raise ValueError(f"length_power is {length_power}; expected a smaller number, such as 1: {what}.")
    stop = stop_ids(stop_tokens, model.config.vocab_size)
    beams = _search(model, start, max_new_tokens, beam_width, jnp.asarray(length_power, float), stop)
    check_finite(np.asarray(beams.scores).reshape(-1).tolist())
    return [_hypotheses(_Beam(*parts)) for parts in zip(*map(np.asarray, beams), strict=True)]


def _hypotheses(beam: "_Beam") -> list[Hypothesis]:
    """The texts in a beam, best first. With few tokens there are fewer of them than places, which then score -inf."""
    order = [place for place in np.argsort(-beam.scores, kind="stable") if np.isfinite(beam.scores[place])]
    return [
        Hypothesis(
            beam.written[place, : beam.lengths[place]].tolist(), float(beam.log_probs[place]), float(beam.scores[place])
        )
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
def _search(model, start: Start, max_new_tokens, beam_width, length_power, stop) -> _Beam:
    """The beams of all prompts after the last step; the model reads the texts of all of them at once."""
    batch = len(start.tokens)
    x, cache = model.extend(start.tokens, model.make_cache(**start.room, batch=(batch,)), start.positions)
    copies = jnp.repeat(jnp.arange(batch), beam_width)  # all places hold the empty text at first
    cache = tuple(part.select(copies) for part in cache)
    next_log_probs = log_probabilities(model.logits(x[:, -1:])[:, 0])[copies]
    beams = _Beam(
        written=jnp.zeros((batch, beam_width, max_new_tokens), jnp.int32),
        log_probs=jnp.zeros((batch, beam_width)).at[:, 1:].set(-jnp.inf),  # one copy of the empty text is enough
        lengths=jnp.zeros((batch, beam_width), jnp.int32),
        ended=jnp.zeros((batch, beam_width), bool),
        scores=jnp.zeros((batch, beam_width)),
    )

    def advance(step, beams, next_log_probs):
        next_log_probs = next_log_probs.reshape(batch, beam_width, -1)
        in_all = jax.vmap(_advance, in_axes=(None, 0, 0, None, None))
        parents, tokens, beams = in_all(step, beams, next_log_probs, length_power, stop)
        rows = parents + beam_width * jnp.arange(batch)[:, None]
        return rows.reshape(-1), tokens.reshape(-1), beams

    def going_on(state):
        step, _, _, beams = state
        return (step < max_new_tokens) & ~beams.ended.all()

    def go_on(state):
        step, tokens, cache, beams = state
        x, longer = model.extend(tokens[:, None], cache, start.positions[copies, -1:] + step)
        rows, tokens, beams = advance(step, beams, log_probabilities(model.logits(x)[:, 0]))
        # What reading does not change, such as the keys of a source, is the same for all texts of a beam.
        kept = [part if part is before else part.select(rows) for part, before in zip(longer, cache, strict=True)]
        return step + 1, tokens, tuple(kept), beams

    _, tokens, beams = advance(0, beams, next_log_probs)
    *_, beams = jax.lax.while_loop(going_on, go_on, (jnp.asarray(1), tokens, cache, beams))
    return beams
