"""Continuing a text: drawn from one distribution after another, with a cache, in one loop (chapter on generation)."""

import itertools
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple, Unpack, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from plainformer.attention.few_bits import Bits
from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import NonNegative, Number, Positive, checked
from plainformer.generation.adjusting import NOTHING_LEFT, Adjust, Adjusting, adjusted_by
from plainformer.generation.prompts import (
    LanguageModel,
    Prompt,
    Prompts,
    Start,
    check_model,
    check_tokenizer,
    prompts_of,
    read_prompts,
    start_of,
)
from plainformer.generation.stopping import Stopping, Written, stop_ids, stop_strings, text_of
from plainformer.tokens.tokenizer import Tokenizer
from plainformer.tokens.tokens import next_token_pairs
from plainformer.training.sharding import Layout

ONE_DEVICE = Layout(None, None)
FLOAT32_MAX = float(np.finfo(np.float32).max)
Logits = Float[Array, " vocab_size"]
TopP = Annotated[float, Number(lambda p: 0 < p <= 1, "a probability above 0 and at most 1, or None for all tokens")]


@checked
def next_token_probabilities(
    logits: Logits,
    *,
    temperature: NonNegative = 1.0,
    top_k: Positive | None = None,
    top_p: TopP | None = None,
    min_p: TopP | None = None,
) -> Float[Array, " vocab_size"]:
    r"""Turn logits into the distribution that the next token is drawn from.

    Implements `eq-generation-temperature`, then `eq-generation-top-k` (Fan et al., 2018), then `eq-generation-top-p`
    (Holtzman et al., 2020, section 3.1), then `eq-serving-min-p` (Nguyen et al., 2024, section 3), each renormalised.

    Args:
        temperature: what logits are divided by. At 0 the most likely tokens share everything equally.
        top_k: how many of the most likely tokens stay; what ties with the last of them stays, too. `None` for all.
        top_p: as few of the most likely tokens stay as have this probability together, at least one, and what ties with
            the last. `None` for all.
        min_p: every token stays that has at least this share of the probability of the likeliest. `None` for all.

    Example:
        Of three tokens, two may be drawn; at temperature 0, only the likeliest.

        >>> logits = jnp.log(jnp.asarray([1.0, 2.0, 6.0]))
        >>> print(pf.next_token_probabilities(logits, top_k=2).round(2))
        [0.   0.25 0.75]
        >>> print(pf.next_token_probabilities(logits, temperature=0))
        [0. 0. 1.]
    """
    return jax.nn.softmax(adjusted(at_least_float32(logits), min(temperature, FLOAT32_MAX), top_k, top_p, min_p))


def adjusted(logits: Logits, temperature, top_k: int | None, top_p, min_p) -> Logits:
    """Return the logits of the distribution that is drawn from."""
    logits = at_temperature(logits, temperature)
    logits = logits if top_k is None else keep_top_k(logits, top_k)
    logits = logits if top_p is None else keep_top_p(logits, top_p)
    return logits if min_p is None else keep_min_p(logits, min_p)


class Choice(NamedTuple):
    """How the next token is chosen: the likeliest if `greedy`, or else one drawn after what the others say."""

    greedy: bool
    temperature: Float[Array, ""]
    top_k: int | None
    top_p: Float[Array, ""] | None
    min_p: Float[Array, ""] | None

    def of(self, logits: Logits) -> Logits:
        """Return the logits of the distribution that a token is drawn from."""
        return adjusted(logits, self.temperature, self.top_k, self.top_p, self.min_p)


def choice_of(
    temperature: float, top_k: int | None, top_p: float | None, min_p: float | None, vocab_size: int
) -> Choice:
    """Return the choice that these arguments of `generate` make, as a part of a compiled program.

    Temperature 0 and `top_k` make another program; other temperatures, `top_p` and `min_p` are mere numbers in it.
    """
    check_top_k(top_k or 1, vocab_size)
    dividing = jnp.asarray(min(temperature, FLOAT32_MAX), float)
    shares = (None if share is None else jnp.asarray(share, float) for share in (top_p, min_p))
    return Choice(temperature == 0, dividing, top_k, *shares)


def key_for(choice: Choice, key: PRNGKeyArray | None) -> PRNGKeyArray:
    """Return the random key, which only a greedy choice can do without."""
    if key is None and not choice.greedy:
        raise TypeError("key is None; expected a random key, such as jax.random.key(0), or temperature=0.")
    return jax.random.key(0) if key is None else key  # never drawn from


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


def keep_min_p(logits: Logits, min_p) -> Logits:
    """Put -inf in place of all logits whose probability is below the share `min_p` of the largest."""
    share = jnp.asarray(min_p, logits.dtype)
    return jnp.where(logits >= logits.max() + jnp.log(share), logits, -jnp.inf)


@checked
def sequence_log_probs(model: Callable, tokens) -> Float[Array, " seq_minus_1"]:
    r"""Return the log-probability that a model gives to each token of a text, after those before it.

    Implements `eq-decoder-factorisation`: their sum is the log-probability of the text, given its first token.

    Returns:
        One number for each token but the first, in nats.
    """
    inputs, targets = next_token_pairs(tokens)
    log_probs = log_probabilities(model(inputs))
    return jnp.take_along_axis(log_probs, targets[:, None], axis=1)[:, 0]


def log_probabilities(logits: Float[Array, "*batch vocab_size"]) -> Float[Array, "*batch vocab_size"]:
    """Return the logarithms of the probabilities, in at least 32 bits: in 16, their sum would soon be off."""
    return jax.nn.log_softmax(at_least_float32(logits))


def check_finite(log_probs: Sequence[float]) -> None:
    """Raise `ValueError` if a model returned NaN: what was chosen by it would not be a text of the model."""
    if any(map(math.isnan, log_probs)):
        raise ValueError(
            "The model gives NaN as the log-probability of a token; expected numbers. Its weights probably hold NaN, "
            "as after a training that diverged: load an earlier checkpoint, or train with a smaller learning rate."
        )
    if math.inf in log_probs:  # which no token of any model has: `adjust` left none
        raise ValueError(NOTHING_LEFT)


class Continuation(NamedTuple):
    """What a model wrote: `tokens`, without the prompt and with the token that stopped it; their `text`, without that
    token, or `None`; their `log_prob`, in nats; whether a token `stopped` it; and `log_probs`, of each token."""

    tokens: list[int]
    text: str | None
    log_prob: float
    stopped: bool
    log_probs: list[float]


class Drawing(Stopping, total=False):
    """What those take that draw."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    key: PRNGKeyArray | None


class DrawingOnDevices(Drawing, Adjusting, total=False):
    """What `generate` takes by keyword: besides, a cache of few bits, and several devices."""

    stop: str | Sequence[str]
    allowed_special: Collection[str]
    cache_bits: Bits | None
    mesh: Mesh | None
    sharding: dict[str, str] | None


@overload
def generate(
    model: LanguageModel,
    prompts: Prompt,
    max_new_tokens: int,
    *,
    stream: Literal[False] = False,
    **options: Unpack[DrawingOnDevices],
) -> Continuation: ...


@overload
def generate(
    model: LanguageModel,
    prompts: Prompts,
    max_new_tokens: int,
    *,
    stream: Literal[False] = False,
    **options: Unpack[DrawingOnDevices],
) -> list[Continuation]: ...


@overload
def generate(
    model: LanguageModel,
    prompts: Prompt,
    max_new_tokens: int,
    *,
    stream: Literal[True],
    **options: Unpack[DrawingOnDevices],
) -> Iterator[int]: ...


@overload
def generate(
    model: LanguageModel,
    prompts: Prompts,
    max_new_tokens: int,
    *,
    stream: Literal[True],
    **options: Unpack[DrawingOnDevices],
) -> Iterator[list[int | None]]: ...


@checked
def generate(
    model: LanguageModel,
    prompts: Prompt | Prompts,
    max_new_tokens: Positive,
    *,
    temperature: NonNegative = 1.0,
    top_k: Positive | None = None,
    top_p: TopP | None = None,
    min_p: TopP | None = None,
    adjust: Adjust | None = None,
    stop_tokens: Sequence[int | str] = (),
    stop: str | Sequence[str] = (),
    stream: bool = False,
    tokenizer: Tokenizer | None = None,
    allowed_special: Collection[str] = (),
    key: PRNGKeyArray | None = None,
    cache_bits: Bits | None = None,
    mesh: Mesh | None = None,
    sharding: dict[str, str] | None = None,
):
    r"""Continue each prompt, token after token, each drawn from `next_token_probabilities` and fed back.

    Implements `eq-generation-ancestral`. The keys and values of what was read are cached. Prompts are padded to a few
    lengths, and compiled once for each of these, number of prompts, `max_new_tokens`, number of stop tokens, `top_k`,
    choice of method and function `adjust`.

    Args:
        model: a `Decoder`, or what has its methods `make_cache`, `extend` and `logits`.
        prompts: a single one, or a list of them, which may differ in length. A prompt is a list of at least one id, or
            a string where there is a `tokenizer`.
        max_new_tokens: how many to write at most. The last one is never read, so the longest prompt may have up to
            `context_len - max_new_tokens + 1`. Beyond that a window slides over the text, and the model sees the last
            `context_len` tokens, if it can: with a scheme that `can_slide`, such as rotary positions or ALiBi. The
            state of a `"delta"` block has no window: it keeps what it read before.
        temperature, top_k, top_p, min_p: as for `next_token_probabilities`; at temperature 0, greedy search: the most
            likely token, the first of those that tie.
        adjust: a function that changes the logits of the next token before all else: of these logits, the ids of the
            prompt, and those written so far, each -1 where there is nothing. What `allowed_texts` makes is one;
            `penalise_repetition` and `penalise_counts` stand in another in one line.
        stop_tokens: ids after which a text ends; with a `tokenizer`, names of its special tokens, too.
        stop: a string, or several, before which a text ends, wherever its tokens are cut; with a `tokenizer`. `tokens`
            are those that were written, up to the one that completes it; `text` ends before it. Tokens are then drawn
            one call after the other, which takes a little longer.
        stream: whether to return an iterator that yields the ids as they come, the same as without: of a single prompt,
            one after the other, for `tokenizer.decode_stream`; of several, a list with an id of each, `None` for a text
            that has ended. Ids that may still become a `stop` string are held back, and `None` stands in their place.
        tokenizer: the one that the model was trained with, a `Vocabulary` or a `BytePairEncoder`.
        allowed_special: names of special tokens that stand for these tokens in prompts that are text, as for
            `BytePairEncoder.encode`; all others are read as letters.
        key: random key, not needed at temperature 0. Each prompt has its own stream: neither what else is in the list
            nor the place in it changes what is drawn. Equal prompts differ by how many there were before.
        cache_bits: in how many bits the cache keeps numbers, 8 or 4, as for `KeyValueCache`; `None` for as they are.
        mesh, sharding: devices that share the work, and what is cut over which axis of them, as for `fit`. Prompts are
            cut where their number divides, and stay whole on each device where it does not.

    Returns:
        A `Continuation`, or a list of them for a list of prompts. Its log-probabilities are those of the model itself,
        temperature 1 and all tokens allowed.

    Example:
        The likeliest letter, twelve times over; then as they come.

        >>> decoder, tokenizer = pf.load_pretrained("decoder")
        >>> pf.generate(decoder, "The ", 12, temperature=0, tokenizer=tokenizer).text
        'standard typ'
        >>> stream = pf.generate(decoder, "The ", 12, temperature=0, tokenizer=tokenizer, stream=True)
        >>> for text in tokenizer.decode_stream(stream):
        ...     print(text, end="-")
        s-t-a-n-d-a-r-d- -t-y-p-
    """
    check_model(model)
    check_tokenizer(tokenizer, model.config.vocab_size)
    texts, single = read_prompts(prompts, model.config.vocab_size, tokenizer, allowed_special=allowed_special)
    can_slide = cache_bits is None and getattr(model, "can_slide", False)  # groups stay where they are
    start = start_of(model.config, texts, max_new_tokens, can_slide=can_slide)
    if cache_bits is not None:
        start.room["bits"] = cache_bits
    choice = choice_of(temperature, top_k, top_p, min_p, model.config.vocab_size)
    strings = stop_strings(stop, tokenizer)
    ends = stop_ids(stop_tokens, model.config.vocab_size, tokenizer=tokenizer)
    draw = Draw(choice, ends, key_for(choice, key), numbers_of(texts), adjust)
    layout = Layout(mesh, sharding, model)
    model, start = layout.place(model), layout.place_batch(start, strict=False)
    if stream:
        unfinished = [Written(strings, tokenizer) for _ in texts]
        ids = _streamed(unfinished, _stepped(model, start, max_new_tokens, draw, layout))
        return (token for (token,) in ids if token is not None) if single else ids
    found = write(model, start, max_new_tokens, draw, tokenizer, strings, layout)
    return found[0] if single else found


def write(
    model, start: Start, max_new_tokens: int, draw: "Draw", tokenizer, strings: tuple[str, ...] = (), layout=ONE_DEVICE
) -> list[Continuation]:
    """Return what `generate` does for prompts that have been looked at."""
    if strings:
        unfinished = [Written(strings, tokenizer) for _ in start.tokens]
        return _write_until(unfinished, _stepped(model, start, max_new_tokens, draw, layout))
    found = layout.run(_generate, model, start, max_new_tokens, draw)
    texts = []
    for ids, log_probs, length, stopped in zip(*map(np.asarray, found), strict=True):
        tokens, logs, is_over = ids[:length].tolist(), log_probs[:length].tolist(), bool(stopped)
        check_finite(logs)
        texts.append(Continuation(tokens, text_of(tokens, is_over, tokenizer), sum(logs), is_over, logs))
    return texts


def numbers_of(prompts, seen: Counter[int] | None = None) -> UInt[Array, "batch 2"]:
    """Two numbers that tell each prompt's random stream: one of its ids, and how many equal ones there were before.

    Those before these prompts have been `seen`, which counts on.
    """
    numbers, seen = [], Counter[int]() if seen is None else seen
    for prompt in prompts:
        content = zlib.crc32(np.asarray(prompt, np.int32).tobytes())
        numbers.append((content, seen[content]))
        seen[content] += 1
    return jnp.asarray(np.asarray(numbers, np.uint32))


def own_key(key: PRNGKeyArray, content, earlier) -> PRNGKeyArray:
    """Return the random key of one prompt, from the two numbers that tell it."""
    return jax.random.fold_in(jax.random.fold_in(key, content), earlier)


class Draw(NamedTuple):
    """How tokens are chosen; where texts end; the key, what tells prompts apart, and what adjusts the logits."""

    choice: Choice
    stop: Int[Array, " num_stop_tokens"]
    key: PRNGKeyArray
    numbers: UInt[Array, "batch 2"]
    adjust: Adjust | None = None


class _Step(NamedTuple):
    """After so many steps: what was written last, one of each per prompt; all that was written, -1 where nothing is
    yet; and the cache of what was read before."""

    number: Int[Array, ""]
    tokens: Int[Array, " batch"]
    log_probs: Float[Array, " batch"]
    stopped: Bool[Array, " batch"]
    written: Int[Array, "batch max_new_tokens"]
    cache: tuple


def _first_step(model, start: Start, max_new_tokens: int, draw: Draw) -> _Step:
    """Read the prompts, and write the first token of each."""
    batch = len(start.tokens)
    cache = model.make_cache(**start.room, batch=(batch,))
    x, cache = model.extend(start.tokens, cache, start.positions)
    none, written = jnp.zeros(batch, jnp.int32), jnp.full((batch, max_new_tokens), -1, jnp.int32)
    step = _Step(jnp.asarray(0, jnp.int32), none, none.astype(float), none > 0, written, cache)
    return _drawn(model.logits(x[:, -1:])[:, 0], start, step, draw)


def _next_step(model, start: Start, step: _Step, draw: Draw) -> _Step:
    """Read what was written last, and write one token more."""
    x, cache = model.extend(step.tokens[:, None], step.cache, start.positions[:, -1:] + step.number)
    return _drawn(model.logits(x)[:, 0], start, step._replace(cache=cache), draw)


def _drawn(logits, start: Start, step: _Step, draw: Draw) -> _Step:
    """Draw a token of each text from its logits."""
    numbers = jnp.broadcast_to(step.number, step.stopped.shape)
    tokens, log_probs = pick(draw, logits, numbers, (prompts_of(start), step.written))
    written = jax.lax.dynamic_update_slice_in_dim(step.written, tokens[:, None], step.number, 1)
    stopped = step.stopped | (tokens[:, None] == draw.stop).any(axis=1)
    return _Step(step.number + 1, tokens, log_probs, stopped, written, step.cache)


def pick(draw: Draw, logits: Float[Array, "batch vocab_size"], numbers: Int[Array, " batch"], texts=None):
    """Return the token of each text that has so many already, with its log-probability in the model's distribution.

    `texts` are the prompts and what was written, for what adjusts logits; `None` if nothing does. The log-probability
    is +inf, which no token has, where no token is left.
    """

    def of_one(logits, number, text, content, earlier):
        logits = at_least_float32(logits)
        left = logits if draw.adjust is None else adjusted_by(draw.adjust, logits, *text)
        if draw.choice.greedy:
            token = left.argmax()
        else:
            key = jax.random.fold_in(own_key(draw.key, content, earlier), number)
            token = jax.random.categorical(key, draw.choice.of(left))
        log_prob = log_probabilities(logits)[token]
        return token.astype(jnp.int32), jnp.where(left.max() == -jnp.inf, jnp.inf, log_prob)

    return jax.vmap(of_one)(logits, numbers, texts, *draw.numbers.T)


@eqx.filter_jit
def _generate(model, start: Start, max_new_tokens: int, draw: Draw):
    step = _first_step(model, start, max_new_tokens, draw)
    batch = len(step.tokens)
    log_probs = jnp.zeros((batch, max_new_tokens), step.log_probs.dtype).at[:, 0].set(step.log_probs)

    def going_on(state):
        step, *_ = state
        return (step.number < max_new_tokens) & ~step.stopped.all()

    def write(state):
        step, log_probs, lengths = state
        lengths = jnp.where(step.stopped, lengths, step.number + 1)
        place, step = step.number, _next_step(model, start, step, draw)
        log_probs = jax.lax.dynamic_update_slice_in_dim(log_probs, step.log_probs[:, None], place, 1)
        return step, log_probs, lengths

    state = step, log_probs, jnp.ones(batch, jnp.int32)
    step, log_probs, lengths = jax.lax.while_loop(going_on, write, state)
    return step.written, log_probs, lengths, step.stopped


_first_step_compiled = eqx.filter_jit(_first_step)


@eqx.filter_jit(donate="all-except-first")  # so that a token is written into the cache where it lies
def _next_step_compiled(given: tuple, step: _Step) -> _Step:
    model, start, draw = given
    return _next_step(model, start, step, draw)


def _stepped(model, start: Start, max_new_tokens: int, draw: Draw, layout: Layout) -> Iterator[_Step]:
    """The same steps as those of `_generate`, each compiled, one after the other."""
    step = layout.run(_first_step_compiled, model, start, max_new_tokens, draw)
    yield step
    for _ in range(1, max_new_tokens):
        step = layout.run(_next_step_compiled, (model, start, draw), step)
        yield step


def _streamed(texts: list[Written], steps: Iterator[_Step]) -> Iterator[list[int | None]]:
    """What `generate` yields: of each text the ids that no further token can take back, as soon as they are certain."""
    for going_on in _taken_in(texts, steps):
        new = [text.released(text.stopped) if place in going_on else [] for place, text in enumerate(texts)]
        yield from map(list, itertools.zip_longest(*new))
    rest = [[] if text.stopped else text.released(is_over=True) for text in texts]
    yield from map(list, itertools.zip_longest(*rest))


def _taken_in(texts: list[Written], steps: Iterator[_Step]) -> Iterator[list[int]]:
    """Give each text that has not stopped its token of each step; yield which these were."""
    for step in steps:
        going_on = [place for place, text in enumerate(texts) if not text.stopped]
        tokens, log_probs, stopped = step.tokens.tolist(), step.log_probs.tolist(), step.stopped.tolist()
        check_finite([log_probs[place] for place in going_on])
        for place in going_on:
            texts[place].append(tokens[place], log_probs[place], stopped[place])
        yield going_on
        if all(text.stopped for text in texts):
            return


def _write_until(texts: list[Written], steps: Iterator[_Step]) -> list[Continuation]:
    """What `write` returns, of texts that may end at a string."""
    for _ in _taken_in(texts, steps):
        pass
    return [Continuation(each.ids, each.text, sum(each.log_probs), each.stopped, each.log_probs) for each in texts]
