"""Continuing a text: one distribution after another, drawn from, with a cache, as one compiled loop (chapter 07)."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple, TypedDict, Unpack, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import NonNegative, Number, Positive, checked
from plainformer.generation.decoding import LanguageModel, Start, check_finite, log_probabilities, start_of, stop_ids
from plainformer.tokens.tokens import next_token_pairs

FLOAT32_MAX = float(np.finfo(np.float32).max)
Logits = Float[Array, " vocab_size"]
Prompts = Sequence[Sequence[int]]
TopP = Annotated[float, Number(lambda p: 0 < p <= 1, "a probability above 0 and at most 1, or None for all tokens")]


@checked
def next_token_probabilities(
    logits: Logits, *, temperature: NonNegative = 1.0, top_k: Positive | None = None, top_p: TopP | None = None
) -> Float[Array, " vocab_size"]:
    r"""Turn logits into the distribution that the next token is drawn from.

    Implements `eq-generation-temperature`, then `eq-generation-top-k` (Fan et al., 2018), then
    `eq-generation-top-p` (Holtzman et al., 2020, section 3.1), each renormalised.

    **Arguments**

    - `temperature`: what logits are divided by. At 0 the most likely tokens share everything equally.
    - `top_k`: how many of the most likely tokens stay; what ties with the last of them stays, too. `None` for all.
    - `top_p`: as few of the most likely tokens stay as have this probability together, at least one, and what ties with
      the last. `None` for all.

    **Example**: of three tokens, two may be drawn; at temperature 0, only the likeliest.

    >>> logits = jnp.log(jnp.asarray([1.0, 2.0, 6.0]))
    >>> print(pf.next_token_probabilities(logits, top_k=2).round(2))
    [0.   0.25 0.75]
    >>> print(pf.next_token_probabilities(logits, temperature=0))
    [0. 0. 1.]
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


@checked
def sequence_log_probs(model: Callable, tokens) -> Float[Array, " seq_minus_1"]:
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


class Drawing(TypedDict, total=False):
    """The further arguments of `generate`, for type checkers."""

    temperature: float
    top_k: int | None
    top_p: float | None
    stop_tokens: Sequence[int]
    key: PRNGKeyArray | None


@overload
def generate(
    model: LanguageModel,
    prompts: Prompts,
    max_new_tokens: int,
    *,
    stream: Literal[False] = False,
    **options: Unpack[Drawing],
) -> list[Continuation]: ...


@overload
def generate(
    model: LanguageModel, prompts: Prompts, max_new_tokens: int, *, stream: Literal[True], **options: Unpack[Drawing]
) -> Iterator[list[int | None]]: ...


@checked
def generate(
    model: LanguageModel,
    prompts: Prompts,
    max_new_tokens: Positive,
    *,
    temperature: NonNegative = 1.0,
    top_k: Positive | None = None,
    top_p: TopP | None = None,
    stop_tokens: Sequence[int] = (),
    stream: bool = False,
    key: PRNGKeyArray | None = None,
):
    r"""Continue each prompt, token after token, each drawn from `next_token_probabilities` and fed back.

    Implements `eq-generation-ancestral`. The keys and values of what was read are cached. Prompts are padded to a few
    lengths, and compiled once for each of these, number of prompts, `max_new_tokens`, number of stop tokens, `top_k`
    and choice of method.

    **Arguments**

    - `model`: a `Decoder`, or what has its methods `make_cache`, `extend` and `logits`.
    - `prompts`: each a list of at least one id; they may differ in length.
    - `max_new_tokens`: how many to write at most. The last one is never read, so the longest prompt may have up to
      `context_len - max_new_tokens + 1`. Beyond that a window slides over the text, and the model sees the last
      `context_len` tokens, if it can: with rotary, relative or no positions, or ALiBi.
    - `temperature`, `top_k`, `top_p`: as for `next_token_probabilities`; at temperature 0, greedy search: the most
      likely token, the first of those that tie.
    - `stop_tokens`: ids after which a text ends.
    - `stream`: whether to return an iterator that yields, as they come, a list of one id per prompt, `None` for a text
      that has ended; they are the same ids as without.
    - `key`: random key, not needed at temperature 0. Each prompt has its own stream: neither what else is in the list
      nor the place in it changes what is drawn. Equal prompts differ by how many there were before.

    **Returns** one `Continuation` per prompt. Its log-probabilities are those of the model itself, temperature 1 and
    all tokens allowed.

    **Example**: the likeliest letter, twelve times over.

    >>> decoder, tokenizer = pf.load_pretrained("decoder")
    >>> [text] = pf.generate(decoder, [tokenizer.encode("The ")], 12, temperature=0)
    >>> tokenizer.decode(text.tokens)
    'standard typ'
    """
    start = start_of(model, prompts, max_new_tokens, may_slide=True)
    if key is None and temperature != 0:
        raise TypeError("key is None; expected a random key, such as jax.random.key(0), or temperature=0.")
    check_top_k(top_k or 1, model.config.vocab_size)
    key = jax.random.key(0) if key is None else key  # never drawn from
    stop = stop_ids(stop_tokens, model.config.vocab_size)
    # 0 picks another method, so it is a part of the program; other temperatures are mere numbers in it, as is top_p.
    dividing = None if temperature == 0 else jnp.asarray(min(temperature, FLOAT32_MAX), float)
    method = dividing, top_k, None if top_p is None else jnp.asarray(top_p, float)
    draw = _Draw(method, stop, key, _numbers_of(prompts))
    if stream:
        return _streamed(model, start, max_new_tokens, draw)
    found = _generate(model, start, max_new_tokens, draw)
    rows = zip(*map(np.asarray, found), strict=True)
    texts = [Continuation(ids[:end].tolist(), logs[:end].tolist(), bool(ended)) for ids, logs, end, ended in rows]
    check_finite(number for text in texts for number in text.log_probs)
    return texts


def _numbers_of(prompts) -> UInt[Array, "batch 2"]:
    """Two numbers that tell each prompt's random stream: one of its ids, and how many equal ones there were before."""
    numbers, seen = [], Counter[int]()
    for prompt in prompts:
        content = zlib.crc32(np.asarray(prompt, np.int32).tobytes())
        numbers.append((content, seen[content]))
        seen[content] += 1
    return jnp.asarray(np.asarray(numbers, np.uint32))


class _Draw(NamedTuple):
    """How tokens are drawn: temperature, top-k and top-p; where texts end; the key, and what tells prompts apart."""

    method: tuple
    stop: Int[Array, " num_stop_tokens"]
    key: PRNGKeyArray
    numbers: UInt[Array, "batch 2"]


class _Step(NamedTuple):
    """After so many steps: what was written last, one of each per prompt, and the cache of what was read before."""

    number: Int[Array, ""]
    tokens: Int[Array, " batch"]
    log_probs: Float[Array, " batch"]
    stopped: Bool[Array, " batch"]
    cache: tuple


def _first_step(model, start: Start, draw: _Draw) -> _Step:
    """Read the prompts, and write the first token of each."""
    cache = model.make_cache(**start.room, batch=(len(start.tokens),))
    x, cache = model.extend(start.tokens, cache, start.positions)
    stopped = jnp.zeros(len(start.tokens), bool)
    return _drawn(model.logits(x[:, -1:])[:, 0], jnp.asarray(0, jnp.int32), stopped, cache, draw)


def _next_step(model, start: Start, step: _Step, draw: _Draw) -> _Step:
    """Read what was written last, and write one token more."""
    x, cache = model.extend(step.tokens[:, None], step.cache, start.positions[:, -1:] + step.number)
    return _drawn(model.logits(x)[:, 0], step.number, step.stopped, cache, draw)


def _drawn(logits, number, stopped, cache, draw: _Draw) -> _Step:
    """Draw a token of each text from its logits, with its log-probability in the model's own distribution."""
    temperature, top_k, top_p = draw.method

    def pick(logits, content, earlier):
        logits = at_least_float32(logits)
        if temperature is None:
            token = logits.argmax()
        else:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(draw.key, content), earlier), number)
            token = jax.random.categorical(key, _adjusted(logits, temperature, top_k, top_p))
        return token.astype(jnp.int32), log_probabilities(logits)[token]

    tokens, log_probs = jax.vmap(pick)(logits, *draw.numbers.T)
    return _Step(number + 1, tokens, log_probs, stopped | (tokens[:, None] == draw.stop).any(axis=1), cache)


@eqx.filter_jit
def _generate(model, start: Start, max_new_tokens: int, draw: _Draw):
    step = _first_step(model, start, draw)
    batch = len(step.tokens)
    written = jnp.zeros((batch, max_new_tokens), jnp.int32).at[:, 0].set(step.tokens)
    log_probs = jnp.zeros((batch, max_new_tokens), step.log_probs.dtype).at[:, 0].set(step.log_probs)

    def going_on(state):
        step, *_ = state
        return (step.number < max_new_tokens) & ~step.stopped.all()

    def write(state):
        step, written, log_probs, lengths = state
        lengths = jnp.where(step.stopped, lengths, step.number + 1)
        place, step = step.number, _next_step(model, start, step, draw)
        written = jax.lax.dynamic_update_slice_in_dim(written, step.tokens[:, None], place, 1)
        log_probs = jax.lax.dynamic_update_slice_in_dim(log_probs, step.log_probs[:, None], place, 1)
        return step, written, log_probs, lengths

    state = step, written, log_probs, jnp.ones(batch, jnp.int32)
    step, written, log_probs, lengths = jax.lax.while_loop(going_on, write, state)
    return written, log_probs, lengths, step.stopped


_first_step_compiled = eqx.filter_jit(_first_step)


@eqx.filter_jit(donate="all-except-first")  # so that a token is written into the cache where it lies
def _next_step_compiled(given: tuple, step: _Step) -> _Step:
    model, start, draw = given
    return _next_step(model, start, step, draw)


def _streamed(model, start: Start, max_new_tokens: int, draw: _Draw) -> Iterator[list[int | None]]:
    """What `generate` yields: the same steps, each compiled, one after the other."""
    step = _first_step_compiled(model, start, draw)
    ended = np.zeros(len(start.tokens), bool)
    for number in range(max_new_tokens):
        step = step if number == 0 else _next_step_compiled((model, start, draw), step)
        check_finite(np.asarray(step.log_probs)[~ended].tolist())
        yield [None if over else token for token, over in zip(step.tokens.tolist(), ended, strict=True)]
        ended = np.array(step.stopped)  # a copy: the next step takes the place of this one
        if ended.all():
            return
