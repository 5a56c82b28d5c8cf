"""Answering in a form, and preferring: batches and losses by which `fit` tunes a trained decoder."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import Natural, Positive, PositiveFloat, checked, ids_in_range, refuse
from plainformer.data.lists import check_list, check_token_ids
from plainformer.data.named_batches import PaddedWindows, check_kind
from plainformer.data.padding import pad_texts
from plainformer.models.adapters import is_adapter
from plainformer.models.decoder import Decoder
from plainformer.tokens.tokens import normal
from plainformer.training.arrays import named_arrays, with_arrays


class Preferences(NamedTuple):
    """Pairs of texts with the same beginning, of which one was preferred: what `preference_loss` reads.

    `chosen` and `rejected` count only what comes after the beginning; `reference` has, for each pair, the
    log-probabilities that a frozen model gives to the two, in this order.
    """

    chosen: PaddedWindows
    rejected: PaddedWindows
    reference: Float[Array, "pairs 2"]


@checked
def answer_windows(texts, answer_token: Natural, length: Positive | None = None) -> PaddedWindows:
    r"""Make a batch of which only the answers count, for `next_token_loss`.

    Implements `eq-finetuning-answer-loss`; Ouyang et al. (2022), section 3.5.

    Args:
        texts: lists of token ids, each with the template's tokens: prompt, `answer_token`, answer.
        answer_token: the id after which the answer begins; where there are several, the last.
        length: the number of inputs of a row; `None` for the longest text's.

    Returns:
        Windows whose `is_token` is `True` where the target is a token of the answer: the row of `answer_token`, which
        foretells the first of them, and the rows after it, but for padding.

    Raises:
        ValueError: if a text lacks the `answer_token`, or has nothing behind it.

    Example:
        In the second text two targets count, 5 and 2.

        >>> windows = pf.models.answer_windows([[7, 8, 9, 1, 6, 2], [7, 1, 5, 2]], answer_token=1)
        >>> print(windows.is_token.astype(int))
        [[0 0 0 1 1]
         [0 1 1 0 0]]
    """
    rows = _lists_of_ids("texts", texts)
    begins = [_start_of_answer(place, row, answer_token) for place, row in enumerate(rows)]
    return _counted_from(begins, rows, _length_of_rows({"texts": rows}, length))


@checked
def continuation_windows(prompts, texts, length: Positive | None = None) -> PaddedWindows:
    r"""Make a batch of which only what goes on from a prompt counts, for `leash` and `log_probability`.

    The texts are those of `eq-finetuning-log-probability`.

    Args:
        prompts: lists of token ids, at least one id each.
        texts: how each prompt goes on, for `leash` as the model wrote it at temperature 1: lists of ids.
        length: the number of inputs of a row; `None` for the longest text's, with its prompt.

    Returns:
        Windows of shape `(texts, length)`, whose `is_token` is `True` where the target is a token of the text: the row
        of the prompt's last token, which foretells the first of them, and the rows after it, but for padding.

    Raises:
        ValueError: if there is no text, one or its prompt is empty, a text is too long, or lists differ in length.

    Example:
        Of both texts the targets 6 and 2, or 5 and 2, count, wherever their prompts end.

        >>> windows = pf.models.continuation_windows([[7, 8, 9], [7]], [[6, 2], [5, 2]])
        >>> print(windows.is_token.astype(int))
        [[0 0 1 1]
         [1 1 0 0]]
    """
    lists = _lists_for_prompts(None, prompts=prompts, texts=texts)
    return _continued(lists, "texts", length=length)[0]


@checked
def log_probability(model: Callable, windows: PaddedWindows) -> Float[Array, " texts"]:
    r"""Return the logarithm of the probability that a model gives to what counts of each text, in nats.

    Implements `eq-finetuning-log-probability`, with the beginning of each text as the prompt.

    Raises:
        ValueError: if a target that counts is out of range, which a compiled function finds when it runs.
    """
    check_kind(windows, PaddedWindows)
    logits = model(windows.inputs)
    targets = _known_targets(logits, windows.targets, windows.is_token)
    log_probs = jax.nn.log_softmax(at_least_float32(logits))
    of_targets = jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
    return jnp.where(windows.is_token, of_targets, 0).sum(axis=-1)


@checked
def leash(model: Callable, reference: Callable, windows: PaddedWindows) -> Float[Array, ""]:
    r"""Estimate how far a model has gone from its reference: the KL divergence of the two, in nats per text.

    Implements `eq-finetuning-leash`. The texts have to be the model's own, drawn from it at temperature 1;
    `continuation_windows` makes windows of them.

    Raises:
        ValueError: if there is no text, or one of which nothing counts, which a compiled function finds when it runs.
    """
    gains = log_probability(model, windows) - log_probability(reference, windows)
    return _of_texts_that_count(gains, windows.is_token).mean()


@checked
def preferences(reference: Callable, prompts, chosen, rejected, length: Positive | None = None) -> Preferences:
    r"""Make a batch of pairs for `preference_loss`, with the log-probabilities of the model that tuning begins with.

    Args:
        reference: that model; it is asked once, so that it need not be kept.
        prompts: lists of token ids, at least one id each.
        chosen, rejected: how each prompt goes on, as somebody preferred it and as they did not: lists of ids.
        length: the number of inputs of a row; `None` for the longest text's.

    Raises:
        ValueError: if there is no pair, a part of one is empty, its two answers are equal, lists differ in length, or
            an id is none of the model's, as far as its `config` says how many it has.
    """
    vocab_size = getattr(getattr(reference, "config", None), "vocab_size", None)
    lists = _lists_for_prompts(vocab_size, prompts=prompts, chosen=chosen, rejected=rejected)
    for place, (one, other) in enumerate(zip(lists["chosen"], lists["rejected"], strict=True)):
        if one == other:
            raise ValueError(
                f"chosen[{place}] and rejected[{place}] are equal; expected two that differ: leave it out."
            )
    better, worse = _continued(lists, "chosen", "rejected", length=length)
    # What was compiled for a function is found again by the function, and knows nothing of what it reads elsewhere.
    has_arrays = any(map(eqx.is_array, jax.tree.leaves(reference)))
    ask = eqx.filter_jit(log_probability) if has_arrays else log_probability
    return Preferences(better, worse, jnp.stack([ask(reference, better), ask(reference, worse)], axis=1))


@checked
def preference_surprise(
    log_probs: Float[Array, "pairs 2"], reference: Float[Array, "pairs 2"], beta: PositiveFloat
) -> Float[Array, ""]:
    r"""Return how surprising it is, in nats, that the first text of each pair is preferred to the second.

    Implements `eq-finetuning-dpo`; Rafailov et al. (2023), equation 7; its gradient is `eq-finetuning-dpo-gradient`,
    and no model surprises less than `eq-finetuning-tilted`, if preferences come from a reward.

    Args:
        log_probs: the log-probabilities of the two texts in the model that is tuned.
        reference: the same in the model that tuning began with.
        beta: the price of a nat's distance from it.

    Example:
        As long as the two models agree, either text may as well be the preferred one.

        >>> same = jnp.asarray([[-3.0, -5.0]])
        >>> print(pf.models.preference_surprise(same, same, beta=0.1).round(3))
        0.693
    """
    rewards = beta * (log_probs - reference)
    return -jax.nn.log_sigmoid(rewards[:, 0] - rewards[:, 1]).mean()


@checked
def preference_loss(
    model: Callable, batch: Preferences, key: PRNGKeyArray | None = None, *, beta: PositiveFloat
) -> Float[Array, ""]:
    r"""Return the `preference_surprise` of a model at a batch of `preferences`.

    For `fit`, say the `beta` first: `functools.partial(preference_loss, beta=0.1)`. The `key` is not used: a text that
    is judged with dropout would seem to have gone from the reference where it has not.
    """
    if not all(hasattr(batch, name) for name in Preferences._fields):
        what = type(batch).__name__
        raise TypeError(f"batch is a {what}; expected Preferences, as pf.models.preferences makes them.")
    log_probs = jnp.stack([log_probability(model, batch.chosen), log_probability(model, batch.rejected)], axis=1)
    return preference_surprise(log_probs, batch.reference, beta)


@checked
def add_tokens(model: Decoder, num_tokens: Positive, *, key: PRNGKeyArray) -> Decoder:
    r"""Return a decoder with new tokens, whose ids come before all others, as special ones do in a `Vocabulary`.

    Their rows start at the mean of the old rows, with a hundredth of a fresh row's noise: a mean row is never far
    likelier than every row that was learned (Hewitt, 2021).

    Raises:
        ValueError: if the output has a matrix of its own, or a linear map an adapter.
    """
    if any(map(is_adapter, named_arrays(model))):
        hint = "Use merge_adapters first, or add tokens before the adapters."
        raise ValueError(f"This Decoder has adapters; expected one without. {hint}")
    if model.output is not None:
        raise ValueError("This Decoder has an output matrix of its own; expected one with a tied embedding.")
    old = model.embedding.weight
    noise = 0.01 * normal(key, (num_tokens, old.shape[1])) / old.shape[1] ** 0.5
    table = jnp.concatenate([old.mean(axis=0) + noise, old])
    config = dataclasses.replace(model.config, vocab_size=len(table))
    larger = eqx.filter_eval_shape(partial(Decoder, config), key=key)
    return with_arrays(larger, named_arrays(model) | {"embedding.weight": table})


@checked
def _known_targets(
    logits: Float[Array, "*batch vocab_size"], targets: Integer[Array, "*batch"], is_token: Bool[Array, "*batch"]
) -> Integer[Array, "*batch"]:
    """The targets; those that count have to be in the vocabulary."""
    hint = "To leave one out, use is_token."
    return ids_in_range(targets, logits.shape[-1], "targets", of="logits", hint=hint, where=is_token)


def _of_texts_that_count(of_texts: Array, is_token: Array) -> Array:
    """Numbers of texts; raise `ValueError` unless there is a text, and in each a token that counts."""
    if not of_texts.size:
        raise ValueError("windows has no text; expected at least one that the model wrote.")
    expected = "at least 1, as each text has to have a token that counts. Leave out those without."
    counted = is_token.sum(axis=-1)
    counted = refuse(counted, counted == 0, "windows.is_token.sum(axis=-1)", expected)
    return jnp.where(counted > 0, of_texts, jnp.nan)


def _start_of_answer(place: int, row: list[int], answer_token: int) -> int:
    """How many tokens stand before the answer."""
    if answer_token not in row:
        hint = "expected the template's token before the answer, as in <question> … <answer> kitchen <end>"
        raise ValueError(f"texts[{place}] has no token {answer_token}; {hint}.")
    begin = len(row) - row[::-1].index(answer_token)
    if begin == len(row):
        raise ValueError(
            f"texts[{place}] ends with the token {answer_token}; expected an answer of at least one token."
        )
    return begin


def _lists_for_prompts(vocab_size: int | None, **given) -> dict[str, list[list[int]]]:
    """Several lists of texts as lists of ids, as many texts in each."""
    lists = {name: _lists_of_ids(name, texts, vocab_size) for name, texts in given.items()}
    sizes = [len(rows) for rows in lists.values()]
    if len(set(sizes)) > 1:
        *names, last = lists
        raise ValueError(f"{', '.join(names)} and {last} have {sizes} texts; expected as many of each.")
    return lists


def _lists_of_ids(name: str, texts, vocab_size: int | None = None) -> list[list[int]]:
    """Texts as lists of ids, none of them empty, at least one of them."""
    check_list(name, texts, "texts, each a list of token ids")
    rows = [check_token_ids(text, vocab_size, f"{name}[{place}]") for place, text in enumerate(texts)]
    if not rows:
        raise ValueError(f"{name} is empty; expected at least one text, a list of token ids.")
    for place, row in enumerate(rows):
        if not row:
            raise ValueError(
                f"{name}[{place}] is empty; expected at least one token, if only the one that ends a text."
            )
    return rows


def _continued(lists: dict[str, list[list[int]]], *names: str, length: int | None) -> list[PaddedWindows]:
    """Of the lists of these names, which go on from the prompts, windows of one length in which only they count."""
    begins = [len(prompt) for prompt in lists["prompts"]]
    rows = {name: [a + b for a, b in zip(lists["prompts"], lists[name], strict=True)] for name in names}
    length = _length_of_rows(rows, length, " with its prompt")
    return [_counted_from(begins, each, length) for each in rows.values()]


def _length_of_rows(texts: dict[str, list[list[int]]], length: int | None, which: str = "") -> int:
    """The number of inputs of a row: that of the longest text if none is given; `ValueError` if one has more."""
    longest = max(len(text) for rows in texts.values() for text in rows) - 1
    for name, rows in texts.items():
        for place, text in enumerate(rows):
            if length is not None and len(text) > length + 1:
                said = f"{name}[{place}]{which} has {len(text)} tokens, the last a target only"
                hint = f"Make it shorter, or take length={longest}, which holds all texts."
                raise ValueError(f"{said}; expected at most {length + 1} for length={length}. {hint}")
    return longest if length is None else length


def _counted_from(begins: list[int], rows: list[list[int]], length: int) -> PaddedWindows:
    """Texts as windows in which those targets count that stand at the given place of their text, or after it."""
    ids, is_token = pad_texts(rows, length + 1)
    counts = is_token & (jnp.arange(ids.shape[1]) >= jnp.asarray(begins)[:, None])
    return PaddedWindows(ids[:, :-1], ids[:, 1:], counts[:, 1:])
