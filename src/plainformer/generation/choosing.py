"""Choosing among texts: answers by likelihood, the best of several, the majority (chapter on serving)."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from plainformer.checks import check_length, checked
from plainformer.data.lists import check_list
from plainformer.generation.prompts import (
    SHORTEST,
    LanguageModel,
    Prompt,
    Prompts,
    check_model,
    check_tokenizer,
    read_prompts,
)
from plainformer.generation.sampling import Continuation, check_finite, log_probabilities
from plainformer.generation.stopping import text_of
from plainformer.tokens.tokenizer import Tokenizer

Per = Literal["text", "token", "character"]


@checked
def read_answers(
    model: LanguageModel, prompt: Prompt, answers: Prompts, *, tokenizer: Tokenizer | None = None
) -> list[Continuation]:
    r"""Return each of some given answers to a prompt as if the model had written it, with its log-probability.

    Implements `eq-decoder-factorisation` for the tokens of the answers alone.

    Args:
        model: as for `generate`.
        prompt: a list of ids, or a string where there is a `tokenizer`.
        answers: a list of such texts, which may differ in length.
        tokenizer: the one that the model was trained with. Each answer is turned into ids alone, without the prompt.

    Example:
        After "The ", one word is likelier than another.

        >>> decoder, tokenizer = pf.load_pretrained("decoder")
        >>> answers = pf.generation.read_answers(decoder, "The ", ["function", "elephant"], tokenizer=tokenizer)
        >>> pf.generation.best_of(answers).text
        'function'
    """
    check_model(model)
    check_tokenizer(tokenizer, model.config.vocab_size)
    (begin, *more), is_one = read_prompts(prompt, model.config.vocab_size, tokenizer, "prompt")
    if more or not is_one:
        raise TypeError("prompt is a list of prompts; expected a single one, which the answers follow.")
    texts, is_one = read_prompts(answers, model.config.vocab_size, tokenizer, "answers")
    if is_one:
        raise TypeError(f"answers is {answers!r}; expected a list of them, such as ['yes', 'no'].")
    longest = len(begin) + max(map(len, texts)) - 1
    check_length("The prompt with its longest answer", longest, model.config.context_len, "context_len")
    length = min(max(SHORTEST, 2 ** (longest - 1).bit_length()), model.config.context_len)
    ids = np.zeros((len(texts), length + 1), np.int32)
    for row, text in zip(ids, texts, strict=True):
        row[: len(begin) + len(text)] = begin + text
    found = np.asarray(_read(model, jnp.asarray(ids)))[:, len(begin) - 1 :]
    read = []
    for ids_of, row in zip(texts, found, strict=True):
        logs = row[: len(ids_of)].tolist()
        check_finite(logs)
        read.append(Continuation(ids_of, text_of(ids_of, False, tokenizer), sum(logs), False, logs))
    return read


@eqx.filter_jit
def _read(model, ids):
    """The log-probability of each token but the first of each text; what stands behind it has no influence."""
    batch, length = ids.shape[0], ids.shape[1] - 1
    positions = jnp.broadcast_to(jnp.arange(length), (batch, length))
    x, _ = model.extend(ids[:, :-1], model.make_cache(length, batch=(batch,)), positions)
    return jnp.take_along_axis(log_probabilities(model.logits(x)), ids[:, 1:, None], axis=2)[..., 0]


@checked
def best_of(texts: Sequence[Continuation], *, per: Per = "token") -> Continuation:
    r"""Return the text with the highest log-probability, as a whole or divided by its length; of equal ones the first.

    Implements `eq-serving-choice`; Brown et al. (2020), section 2.4, divide by tokens.

    Args:
        texts: what `generate` wrote, or what `read_answers` read.
        per: what its length is counted in: 1 for a `"text"`, whatever its length; its tokens, with the one that stopped
            it; or the characters of its `text`.

    Example:
        The likeliest text is a short one; by token or by character it is another.

        >>> decoder, tokenizer = pf.load_pretrained("decoder")
        >>> texts = pf.generation.read_answers(decoder, "The ", ["a", "statement"], tokenizer=tokenizer)
        >>> [pf.generation.best_of(texts, per=per).text for per in ("text", "token", "character")]
        ['a', 'statement', 'statement']
    """
    _check_texts(texts)
    if per == "character" and any(text.text is None for text in texts):
        raise ValueError("A text has ids alone; to count characters, give generate or read_answers the tokenizer.")
    lengths = {
        "text": lambda text: 1,
        "token": lambda text: len(text.tokens),
        "character": lambda text: max(len(text.text), 1),
    }
    return max(texts, key=lambda text: text.log_prob / lengths[per](text))


@checked
def majority(texts: Sequence[Continuation]) -> Continuation:
    r"""Return the text that was written most often, however probable it is; of equally frequent ones the first.

    Implements `eq-serving-majority`; Wang et al. (2022), section 2, where whole texts are the answers.

    Example:
        >>> decoder, tokenizer = pf.load_pretrained("decoder")
        >>> texts = pf.generation.read_answers(decoder, "The ", ["set", "list", "set"], tokenizer=tokenizer)
        >>> pf.generation.majority(texts).text
        'set'
    """
    _check_texts(texts)
    counts = Counter(tuple(text.tokens) for text in texts)
    return max(texts, key=lambda text: counts[tuple(text.tokens)])


def _check_texts(texts) -> None:
    """Raise unless these are texts with log-probabilities, and at least one."""
    check_list("texts", texts, "texts, as generate and read_answers return them")
    if not len(texts):
        raise ValueError("texts is empty; expected at least one to choose from.")
    for place, text in enumerate(texts):
        if not hasattr(text, "log_prob") or not hasattr(text, "tokens"):
            what = type(text).__name__
            raise TypeError(f"texts[{place}] is a {what}; expected a text as generate and read_answers return it.")
