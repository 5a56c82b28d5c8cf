"""Pairs of texts to learn from, the loss on them, and translating many sources at once (chapter 09)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plainformer.checks import Positive, Rate, check_batch, check_length, checked, ids_in_range, refuse
from plainformer.data.lists import check_list, check_token_ids
from plainformer.data.padding import pad_texts
from plainformer.generation.beam import search_all
from plainformer.generation.sampling import generate
from plainformer.models.seq2seq import Seq2Seq, Seq2SeqConfig
from plainformer.training.losses import cross_entropy


class TranslationBatch(NamedTuple):
    """Pairs of texts for teacher forcing, padded on the right; the last array says where a target counts."""

    source: Int[Array, "batch source_seq"]
    is_source: Bool[Array, "batch source_seq"]
    inputs: Int[Array, "batch target_seq"]
    targets: Int[Array, "batch target_seq"]
    is_target: Bool[Array, "batch target_seq"]


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

    **Arguments**

    - `pairs`: each a source and a target, lists of ids, the target without start and stop tokens.
    - `source_len`, `target_len`: how long the padded rows shall be; `None` for what the longest text needs. A target
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
    model: Callable, batch: tuple, key: PRNGKeyArray | None = None, *, label_smoothing: Rate = 0.0
) -> Float[Array, ""]:
    r"""Mean cross-entropy of an encoder–decoder on pairs of texts, in nats per token of the targets.

    Implements `eq-seq2seq-loss`; Sutskever et al. (2014), section 3.2, as a mean per token.

    **Arguments** a model such as a `Seq2Seq`; what `translation_batch` makes; a random key for dropout, or `None`.
    """
    check_batch(batch, "source", "is_source", "inputs", "targets", "is_target")
    source, is_source, inputs, targets, is_target = batch
    return cross_entropy(model(source, inputs, is_source, key=key), targets, is_target, label_smoothing=label_smoothing)


@checked
def translate(
    model: Seq2Seq,
    sources: Sequence[Sequence[int]],
    max_new_tokens: Positive | None = None,
    *,
    beam_width: Positive | None = None,
    batch_size: Positive = 64,
    **options,
) -> list[list[int]]:
    r"""Write a target for each source, all of them of any length: padded, so that one program serves them all.

    **Arguments**

    - `max_new_tokens`: how many tokens to write at most, with the stop token; `None` for as many as the model can read.
    - `beam_width`: search with a beam of this width; `None` to write by `generate`.
    - `batch_size`: how many sources at a time.
    - `options`: further ones of `generate` or `beam_search`, such as `temperature` and `key`; greedy without. Where
      `stop_tokens` are given, a target ends at these, too.

    **Returns** for each source the ids of the target, without the start token given and the stop token; the best found,
    with a beam. What is drawn depends on the key and on `batch_size`.

    **Example**: a date, from letters to letters.

    >>> model, tokenizer = pf.load_pretrained("seq2seq")
    >>> [target] = pf.translate(model, [tokenizer.encode("17 July 1987")])
    >>> tokenizer.decode(target)
    '1987-07-17'
    """
    check_list("sources", sources, "sources, each a list of ids")
    if not len(sources):
        raise ValueError("There are no sources; expected at least one.")
    if np.ndim(sources[0]) == 0 and hasattr(sources[0], "__index__"):
        raise TypeError("sources is a single source; expected a list of them: pass [source].")
    config = model.config
    source, is_source = pad_texts(sources)
    _check_sources(config, source)  # all of them, before the first is translated
    room = [(0, 0), (0, config.source_len - source.shape[1])]
    source, is_source = jnp.pad(source, room), jnp.pad(is_source, room)
    max_new_tokens = config.context_len if max_new_tokens is None else max_new_tokens
    check_length("A target of max_new_tokens", max_new_tokens, config.context_len, "context_len")
    if beam_width is None:
        options = {"temperature": 0.0, **options}
    elif sampled := sorted({"temperature", "top_k", "top_p", "key"} & options.keys()):
        raise TypeError(f"{sampled[0]} is for drawing, and beam_width for searching: leave one of them out.")
    if "stream" in options:
        raise TypeError("stream is for generate, which writes for a few prompts; expected options of translating only.")
    written, size = [], min(batch_size, len(source))
    stop_tokens = [config.stop_token, *options.pop("stop_tokens", ())]
    key = options.pop("key", None)
    for first in range(0, len(source), size):
        rows = jnp.minimum(jnp.arange(first, first + size), len(source) - 1)  # the last batch as large as the others
        conditioned = model.condition_on(source[rows], is_source[rows])
        prompts, stop = [[config.start_token]] * size, {**options, "stop_tokens": stop_tokens}
        if beam_width is None:  # with a key per batch, or else each would draw the same
            own = None if key is None else jax.random.fold_in(key, first)
            found = [text.tokens for text in generate(conditioned, prompts, max_new_tokens, key=own, **stop)]
        else:
            searched = search_all(conditioned, prompts, max_new_tokens, beam_width, **stop)
            found = [best.tokens for best, *_ in searched]
        written += found[: len(source) - first]
    return [tokens[:-1] if tokens[-1] in stop_tokens else tokens for tokens in written]


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
