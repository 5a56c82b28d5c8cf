"""Pairs of texts to learn from, the loss on them, and translating many sources at once (chapter 08)."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from plainformer.checks import check_list, check_positive, check_token_ids
from plainformer.data.parallel import pad_texts
from plainformer.generation.beam import beam_search
from plainformer.generation.sampling import generate
from plainformer.models.seq2seq_config import as_sources
from plainformer.training.losses import cross_entropy

Batch = tuple[
    Int[Array, "pairs source_seq"],
    Bool[Array, "pairs source_seq"],
    Int[Array, "pairs target_seq"],
    Int[Array, "pairs target_seq"],
    Bool[Array, "pairs target_seq"],
]


def translation_batch(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    config,
    *,
    source_len: int | None = None,
    target_len: int | None = None,
) -> Batch:
    r"""Turn pairs of texts into the arrays that teacher forcing needs.

    The decoder reads the start token and the target; at each of these it is to expect the next one, at the last of them
    the stop token.

    **Arguments**

    - `pairs`: each a source and a target, lists of ids, the target without start and stop tokens.
    - `config`: a `Seq2SeqConfig`, for the two special tokens and the longest texts allowed.
    - `source_len`, `target_len`: how long the padded rows shall be; `None` for what the longest text needs. A target
      takes one place more than it has tokens.

    **Returns** `source` and `is_source`, `(num_pairs, source_len)`; `inputs`, `targets` and `is_target`,
    `(num_pairs, target_len)`. Rows are padded on the right; the last array says where a target counts.

    **Raises** `ValueError` if there is no pair, a source is empty or a text too long, a target holds a start or stop
    token, or an id is out of range; `TypeError` if pairs are none, or a text is a string.
    """
    check_list("pairs", pairs, "pairs, each a source and a target")
    for place, pair in enumerate(pairs):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise TypeError(f"pairs[{place}] is {pair!r}; expected a source and a target, two lists of ids.")
    source, is_source = pad_texts([list(source) for source, _ in pairs], source_len)
    start, stop = config.start_token, config.stop_token
    inputs, is_target = pad_texts([[start, *target] for _, target in pairs], target_len)
    targets, _ = pad_texts([[*target, stop] for _, target in pairs], target_len)
    vocab_sizes = config.encoder_config().vocab_size, config.vocab_size
    for name, ids, vocab_size in (("source", source, vocab_sizes[0]), ("target", targets, vocab_sizes[1])):
        if (outside := np.argwhere(np.asarray(ids) >= vocab_size)).size:
            number, place = outside[0]
            raise ValueError(
                f"The {name} of pairs[{number}] holds {ids[number, place]}; expected ids below {vocab_size}."
            )
    special = np.asarray(is_target)[:, 1:] & np.isin(np.asarray(inputs)[:, 1:], [start, stop])
    if special.any():
        number, place = np.argwhere(special)[0]
        raise ValueError(
            f"The target of pairs[{number}] holds {inputs[number, place + 1]}, a start or stop token; expected the text "
            "alone: these are put in here."
        )
    for name, array, longest in (("source", source, config.source_len), ("target", inputs, config.context_len)):
        if array.shape[1] > longest:
            raise ValueError(f"A {name} takes {array.shape[1]} tokens; expected at most {longest}. Cut it.")
    return source, is_source, inputs, targets, is_target


def translation_loss(model, batch: tuple, key=None, *, label_smoothing: float = 0.0) -> Float[Array, ""]:
    r"""Give the mean cross-entropy of an encoder–decoder on pairs of texts, in nats per token of the targets.

    Implements `eq-seq2seq-loss`; Sutskever et al. (2014), section 3.2, as a mean per token.

    **Arguments**

    - `model`: such as a `Seq2Seq`; from source, inputs and `is_source` to logits, `(pairs, target_seq, vocab_size)`.
    - `batch`: as `translation_batch` makes it.
    - `key`: random key for dropout; `None` for none.
    - `label_smoothing`: as for `cross_entropy`.

    **Returns** a scalar. **Raises** as the model and `cross_entropy` do; `TypeError` if `batch` is not five arrays.
    """
    if len(batch) != 5:
        raise TypeError(f"batch is {len(batch)} arrays; expected 5: see translation_batch.")
    source, is_source, inputs, targets, is_target = batch
    return cross_entropy(model(source, inputs, is_source, key=key), targets, is_target, label_smoothing=label_smoothing)


def translate(
    model,
    sources: Sequence[Sequence[int]],
    max_new_tokens: int | None = None,
    *,
    beam_width: int | None = None,
    batch_size: int = 64,
    **options,
) -> list[list[int]]:
    r"""Write a target for each source, all of them of any length.

    Sources are padded to `source_len`, so that one program serves them all.

    **Arguments**

    - `model`: a `Seq2Seq`.
    - `sources`: a list of lists of ids.
    - `max_new_tokens`: how many tokens to write at most, with the stop token; `None` for as many as the model can read.
    - `beam_width`: search with a beam of this width, source by source; `None` to write all at once by `generate`.
    - `batch_size`: how many to write at a time, without a beam.
    - `options`: further ones of `generate` or `beam_search`, such as `temperature` and `key`; greedy without.

    **Returns** for each source the ids of the target, without the start token given and the stop token; the best found,
    with a beam. What is drawn depends on the key and on `batch_size`.

    **Raises** as `pad_texts`, `Seq2Seq.given`, and `generate` or `beam_search`; `TypeError` if the model reads no
    source.
    """
    if not hasattr(model, "given"):
        raise TypeError(
            f"model is of type {type(model).__name__}; expected one that reads a source, such as a Seq2Seq."
        )
    check_positive(batch_size=batch_size)
    config = model.config
    check_list("sources", sources, "sources, each a list of ids")
    max_new_tokens = config.context_len if max_new_tokens is None else max_new_tokens
    if beam_width is not None and (sampled := sorted({"temperature", "top_k", "top_p", "key"} & options.keys())):
        raise TypeError(
            f"{sampled[0]} is for drawing, and beam_width for searching; expected one of them: leave one out."
        )
    start, stop = [config.start_token], [config.stop_token]
    ids, is_token = pad_texts(sources)
    as_sources(config, ids, is_token)  # all are checked before the first is translated
    room = [(0, 0), (0, max(config.source_len - ids.shape[1], 0))]
    ids, is_token = jnp.pad(ids, room), jnp.pad(is_token, room)
    found: list[list[int]] = []
    if beam_width is not None:
        for number in range(len(ids)):
            given = model.given(ids[number : number + 1], is_token[number : number + 1])
            best = beam_search(given, start, max_new_tokens, beam_width=beam_width, stop_tokens=stop, **options)[0]
            found.append(best.tokens)
    else:
        options = {"temperature": 0.0, **options}
        size = min(batch_size, len(ids))
        for first in range(0, len(ids), size):
            rows = jnp.minimum(jnp.arange(first, first + size), len(ids) - 1)  # the last batch as large as the others
            given = model.given(ids[rows], is_token[rows])
            if (key := options.get("key")) is not None:
                key = jax.random.fold_in(key, first)  # or else every batch would draw the same
            written = generate(given, [start] * size, max_new_tokens, stop_tokens=stop, **{**options, "key": key})
            found += [each.tokens for each in written[: len(ids) - first]]
    return [tokens[:-1] if tokens[-1] == config.stop_token else tokens for tokens in found]


def exact_match(found: Sequence, expected: Sequence) -> float:
    r"""Say what fraction of the texts is exactly as expected.

    Implements `eq-seq2seq-exact-match`. **Arguments** the texts found and those expected, in the same order, as lists of
    ids or as strings. **Returns** a number from 0 to 1. **Raises** `ValueError` if there are not equally many, or none;
    `TypeError` if one of them is a string of its own.
    """
    check_list("found", found, "texts")
    check_list("expected", expected, "texts")
    if len(found) != len(expected) or not len(expected):
        raise ValueError(
            f"{len(found)} texts are found, {len(expected)} expected; expected equally many, at least one."
        )

    if len({isinstance(text, str) for text in (*found, *expected)}) > 1:
        raise TypeError("Some texts are strings and some are lists of ids; expected one kind: decode() the ids.")

    def plain(text):
        return text if isinstance(text, str) else check_token_ids(text)

    return sum(plain(one) == plain(other) for one, other in zip(found, expected, strict=True)) / len(expected)
