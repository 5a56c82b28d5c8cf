"""Pairs of texts to learn from, their loss, and translating many at once (chapter on encoder–decoders)."""

from collections.abc import Callable, Sequence
from typing import Unpack, overload

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.checks import NonNegative, Positive, Rate, check_length, checked, ids_in_range, refuse
from plainformer.data.lists import check_list, check_token_ids
from plainformer.data.named_batches import TranslationBatch, check_kind
from plainformer.data.padding import pad_texts
from plainformer.generation.adjusting import Adjust, Adjusting
from plainformer.generation.beam import Hypothesis, check_length_power, search
from plainformer.generation.prompts import Prompt, Prompts, check_tokenizer, read_prompts, start_of
from plainformer.generation.sampling import Continuation, Draw, Drawing, TopP, choice_of, key_for, numbers_of, write
from plainformer.generation.stopping import stop_ids, stop_strings
from plainformer.models.seq2seq import Seq2Seq, Seq2SeqConfig, conditioned
from plainformer.tokens.tokenizer import Tokenizer
from plainformer.training.losses import cross_entropy


@checked
def translation_batch(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    config: Seq2SeqConfig,
    *,
    source_len: Positive | None = None,
    target_len: Positive | None = None,
) -> TranslationBatch:
    r"""Turn pairs of texts into the arrays that teacher forcing needs.

    The decoder reads the start token and the target; at each of these it is to expect the next one, at the last of them
    the stop token.

    Args:
        pairs: each a source and a target, lists of ids, the target without start and stop tokens.
        source_len, target_len: how long the padded rows shall be; `None` for what the longest text needs. A target
            takes one place more than it has tokens.
    """
    check_list("pairs", pairs, "pairs, each a source and a target")
    for place, pair in enumerate(pairs):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise TypeError(f"pairs[{place}] is {pair!r}; expected a source and a target, two lists of ids.")
    start, stop = config.start_token, config.stop_token
    source, is_source = pad_texts([list(source) for source, _ in pairs], source_len)
    inputs, is_target = pad_texts([[start, *target] for _, target in pairs], target_len)
    targets, _ = pad_texts([[*target, stop] for _, target in pairs], target_len)
    _check_sources(config, source)
    check_length("A target with its start token", inputs.shape[1], config.context_len, "context_len")
    ids_in_range(np.asarray(targets), config.vocab_size, "targets")  # NumPy compiles nothing for each shape
    texts = np.asarray(inputs)[:, 1:]
    special = np.asarray(is_target)[:, 1:] & np.isin(texts, [start, stop])
    refuse(texts, special, "targets", "the text alone, without start and stop token: these are put in here.")
    return TranslationBatch(source, is_source, inputs, targets, is_target)


def _check_sources(config: Seq2SeqConfig, source) -> None:
    check_length("A source", source.shape[-1], config.source_len, "source_len")
    vocab_size = config.vocab_size if config.source_vocab_size is None else config.source_vocab_size
    ids_in_range(np.asarray(source), vocab_size, "sources")


@checked
def translation_loss(
    model: Callable, batch: TranslationBatch, key: PRNGKeyArray | None = None, *, label_smoothing: Rate = 0.0
) -> Float[Array, ""]:
    r"""Mean cross-entropy of an encoder–decoder on pairs of texts, in nats per token of the targets.

    Implements `eq-seq2seq-loss`; Sutskever et al. (2014), section 3.2, as a mean per token.

    Args:
        model: a model such as a `Seq2Seq`.
        batch: what `translation_batch` makes.
        key: a random key for dropout, or `None`.
    """
    check_kind(batch, TranslationBatch)
    logits = model(*batch.read, key=key)
    return cross_entropy(logits, batch.targets, batch.is_target, label_smoothing=label_smoothing)


class Translating(Drawing, Adjusting, total=False):
    """What `translate` takes by keyword, for type checkers."""

    stop: str | Sequence[str]
    beam_width: int | None
    length_power: float
    batch_size: int


@overload
def translate(
    model: Seq2Seq, sources: Prompt, max_new_tokens: int | None = None, **options: Unpack[Translating]
) -> Continuation | Hypothesis: ...


@overload
def translate(
    model: Seq2Seq, sources: Prompts, max_new_tokens: int | None = None, **options: Unpack[Translating]
) -> list[Continuation | Hypothesis]: ...


@checked
def translate(
    model: Seq2Seq,
    sources: Prompt | Prompts,
    max_new_tokens: Positive | None = None,
    *,
    temperature: NonNegative = 0.0,
    top_k: Positive | None = None,
    top_p: TopP | None = None,
    min_p: TopP | None = None,
    adjust: Adjust | None = None,
    beam_width: Positive | None = None,
    length_power: NonNegative = 1.0,
    stop_tokens: Sequence[int | str] = (),
    stop: str | Sequence[str] = (),
    batch_size: Positive = 64,
    tokenizer: Tokenizer | None = None,
    key: PRNGKeyArray | None = None,
):
    r"""Write a target for each source, all of them of any length: padded, so that one program serves them all.

    Args:
        sources: a single one, or a list of them, as the prompts of `generate`.
        max_new_tokens: how many tokens to write at most, with the stop token; `None` for as many as the model can read.
        temperature, top_k, top_p, min_p: to draw, as for `generate`; the likeliest token without.
        adjust: as for `generate`, and for `beam_search` with a beam.
        beam_width, length_power: to search with a beam of this width, as for `beam_search`; `None` for no search.
        stop_tokens: ids after which a target ends, beside the model's own stop token; with a `tokenizer`, names of its
            special tokens, too.
        stop: a string, or several, before which a target ends, as for `generate`; not with a beam, which ranks whole
            tokens.
        batch_size: how many sources at a time.
        tokenizer: the one that the model was trained with.
        key: random key to draw with, as for `generate`. What is drawn does not depend on the other sources, but for
            equal ones before.

    Returns:
        What `generate` does, or the best that `beam_search` finds; a list for a list of sources. The `tokens` end with
        the stop token if it was written, and the `text` goes without.

    Example:
        A date, from letters to letters.

        >>> model, tokenizer = pf.load_pretrained("seq2seq")
        >>> pf.translate(model, "17 July 1987", tokenizer=tokenizer).text
        '1987-07-17'
    """
    if beam_width is not None and (temperature or top_k or top_p or min_p or key is not None):
        raise TypeError(
            "temperature, top_k, top_p, min_p and key are for drawing, and beam_width for searching: expected one."
        )
    if beam_width is None and length_power != 1:
        raise TypeError(f"length_power is {length_power}, which is for searching; expected a beam_width beside it.")
    if beam_width is None and not temperature and (top_k or top_p or min_p):
        raise TypeError("top_k, top_p and min_p are for drawing; expected a temperature beside them, such as 1.0.")
    if beam_width is not None and stop:
        raise TypeError(
            f"stop is {stop!r} beside a beam_width, which ranks whole tokens; expected stop_tokens, or no beam."
        )
    config, strings = model.config, stop_strings(stop, tokenizer)
    texts, source, is_source, single = _read_sources(config, sources, tokenizer)
    max_new_tokens = config.context_len if max_new_tokens is None else max_new_tokens
    check_length("A target of max_new_tokens", max_new_tokens, config.context_len, "context_len")
    check_length_power(length_power, max_new_tokens)
    size = min(batch_size, len(texts))
    ends = stop_ids(stop_tokens, config.vocab_size, own=[config.stop_token], tokenizer=tokenizer)
    start = start_of(config, [[config.start_token]] * size, max_new_tokens)
    choice, numbers = choice_of(temperature, top_k, top_p, min_p, config.vocab_size), numbers_of(texts)
    draw = Draw(choice, ends, key_for(choice, key), numbers[:size], adjust)
    found: list[Continuation | Hypothesis] = []
    for first in range(0, len(texts), size):
        rows = jnp.minimum(jnp.arange(first, first + size), len(texts) - 1)  # the last batch as large as the others
        reading = conditioned(model, source[rows], is_source[rows])
        if beam_width is None:
            drawing = draw._replace(numbers=numbers[rows])
            found += write(reading, start, max_new_tokens, drawing, tokenizer, strings)
        else:
            beams = search(reading, start, max_new_tokens, beam_width, length_power, ends, tokenizer, adjust)
            found += [best for best, *_ in beams]
    return found[0] if single else found[: len(texts)]


def _read_sources(config: Seq2SeqConfig, sources, tokenizer):
    """The ids of each source; the same as a matrix that has room for any; where it has tokens; whether there is one."""
    own = config.source_vocab_size
    check_tokenizer(tokenizer, config.vocab_size)
    check_tokenizer(tokenizer, config.vocab_size if own is None else own)
    texts, single = read_prompts(sources, config.vocab_size if own is None else own, tokenizer, "sources")
    check_length("A source", max(map(len, texts)), config.source_len, "source_len")
    return texts, *pad_texts(texts, config.source_len), single


def exact_match(found: Sequence, expected: Sequence) -> float:
    r"""Return what fraction of the texts is exactly as expected.

    Implements `eq-seq2seq-exact-match`; the texts are all lists of ids, or all strings.
    """
    check_list("found", found, "texts")
    check_list("expected", expected, "texts")
    if len(found) != len(expected) or not len(expected):
        raise ValueError(f"{len(found)} texts found, {len(expected)} expected; there must be equally many, and some.")
    if len({isinstance(text, str) for text in (*found, *expected)}) > 1:
        raise TypeError("Some texts are strings and some are lists of ids; expected one kind: decode() the ids.")

    def plain(text):
        return text if isinstance(text, str) else check_token_ids(text)

    return sum(plain(one) == plain(other) for one, other in zip(found, expected, strict=True)) / len(expected)
