"""Talking with a model that was trained to answer: what was read stays in the cache from turn to turn."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, cast

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from plainformer.attention.cache import rewound
from plainformer.checks import NonNegative, Positive, checked
from plainformer.generation.prompts import LanguageModel, check_model, check_tokenizer, int32
from plainformer.generation.sampling import Draw, TopP, check_finite, choice_of, key_for, numbers_of, pick
from plainformer.generation.stopping import Written, stop_ids, stop_strings
from plainformer.tokens.hugging_face import HuggingFaceTokenizer
from plainformer.training.notices import warn

CHUNK = 64  # how many tokens are read at once; what is missing is filled up, so that one program reads all


class Chat:
    r"""A conversation with a model that was trained to answer, such as `open_model` opens.

    What was read stays in the key–value cache: of each new question, only what is new is read.

    Args:
        model: a `Decoder`.
        tokenizer: its own, with a `chat_template` and the token with which an answer ends.
        system: what the model is told beforehand; `None` for what the template says.
        room: for how many tokens the conversation has room; `None` for 2,048, or as many as the model reads.
        stop: strings, too, before which an answer ends, as for `generate`.
        temperature, top_k, top_p, min_p: how an answer is drawn, as for `generate`; the likeliest tokens without.
        key: random key, not needed at temperature 0.

    Raises:
        ValueError: if the tokenizer has no template, or is of another model.

    Example:
        A model of one block that was never trained, with a template of one line, says something.

        >>> from plainformer.pretrained.gguf_files import byte_pairs
        >>> from plainformer.tokens.hugging_face import HuggingFaceTokenizer
        >>> letters = byte_pairs([*"abcd", "<end>"], [], [1, 1, 1, 1, 3], "gpt-2", None)
        >>> template = "{% for each in messages %}{{ each.content }}<end>{% endfor %}"
        >>> tokenizer = HuggingFaceTokenizer(letters, template, end="<end>")
        >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
        >>> chat = pf.Chat(pf.Decoder(pf.DecoderConfig(5, 64, stack=stack), key=jax.random.key(0)), tokenizer)
        >>> answer = "".join(chat.say("abba", max_new_tokens=3))
        >>> [message["role"] for message in chat.messages]
        ['user', 'assistant']
    """

    @checked
    def __init__(
        self,
        model: LanguageModel,
        tokenizer: HuggingFaceTokenizer,
        *,
        system: str | None = None,
        room: Positive | None = None,
        stop: str | Sequence[str] = (),
        temperature: NonNegative = 0.0,
        top_k: Positive | None = None,
        top_p: TopP | None = None,
        min_p: TopP | None = None,
        key: PRNGKeyArray | None = None,
    ):
        check_model(model)
        check_tokenizer(tokenizer, model.config.vocab_size)
        template, end = getattr(tokenizer, "chat_template", None), getattr(tokenizer, "end", None)
        if not isinstance(tokenizer, HuggingFaceTokenizer) or template is None or end is None:
            raise ValueError(
                "The tokenizer has no chat_template, or no end of an answer; expected that of a model trained for "
                "conversations, as open_model returns it. To continue a text, use generate."
            )
        context_len = model.config.context_len
        if room is not None and room > context_len:
            raise ValueError(f"room is {room}; expected at most {context_len}, as many tokens as the model reads.")
        self.messages = [] if system is None else [{"role": "system", "content": system}]
        self.room = min(2048, context_len) if room is None else room
        self._model, self._tokenizer = model, cast(Any, tokenizer)
        self._strings = stop_strings(stop, self._tokenizer)
        self._choice = choice_of(temperature, top_k, top_p, min_p, model.config.vocab_size)
        self._key = key_for(self._choice, key)
        if end not in tokenizer.special:
            raise ValueError(f"The tokenizer ends an answer with {end!r}; expected one of its special tokens.")
        self._ends = stop_ids([end], model.config.vocab_size, tokenizer=self._tokenizer)
        self._read: list[int] = []
        self._cache: tuple | None = None
        self._open: Generator[str, None, None] | None = None

    @checked
    def say(self, text: str, max_new_tokens: Positive = 512) -> Iterator[str]:
        """Say something, and yield the answer as it comes, in whole characters.

        Both stand in `messages` afterwards; of an answer that is broken off, as by another question, what was written
        until then, and neither if that is nothing.

        Raises:
            ValueError: if the conversation has no room left.
        """
        if self._open is not None:
            self._open.close()
        asked = [*self.messages, {"role": "user", "content": text}]
        ids = self._tokenizer.encode_conversation(asked)
        if not ids:
            raise ValueError("The template makes no tokens of these messages. Is it that of this model?")
        if len(ids) >= self.room:
            raise ValueError(
                f"The conversation has {len(ids)} tokens with this question; expected fewer than room={self.room}. "
                f"Begin a new one, or one with more room: the model reads {self._model.config.context_len}."
            )
        self._open = self._answer(asked, ids, max_new_tokens)
        return self._open

    def _answer(self, asked: list[dict], ids: list[int], max_new_tokens: int) -> Generator[str, None, None]:
        written = Written(self._strings, self._tokenizer)
        try:
            yield from self._tokenizer.decode_stream(self._tokens(ids, max_new_tokens, written))
        finally:
            if written.ids:
                self.messages = [*asked, {"role": "assistant", "content": written.text or ""}]

    def _tokens(self, ids: list[int], max_new_tokens: int, written: Written) -> Iterator[int]:
        """The ids of an answer, as soon as they are certain, without the token that ends it."""
        ends, draw = set(np.asarray(self._ends).tolist()), Draw(self._choice, self._ends, self._key, numbers_of([ids]))
        logits, number = self._logits_after(ids), 0
        while number < max_new_tokens:
            token, log_prob = (each.item() for each in _pick(draw, logits, int32([number])))
            check_finite([log_prob])
            written.append(token, log_prob, token in ends)
            yield from (each for each in written.released(written.stopped) if each not in ends)
            number += 1
            if written.stopped:
                return
            if len(self._read) + 1 >= self.room:
                warn(f"The conversation is full: the answer ends here, after {self.room} tokens. Begin a new one.")
                break
            if number < max_new_tokens:
                logits = self._logits_after([*self._read, token])
        yield from written.released(is_over=True)

    def _logits_after(self, ids: list[int]):
        """The logits after some tokens, of which those are read that were not read before."""
        same = [one == other for one, other in zip(self._read, ids[:-1], strict=False)]
        first = same.index(False) if False in same else len(same)
        cache = self._model.make_cache(self.room + CHUNK) if self._cache is None else self._cache
        self._read, self._cache, logits = [], None, None  # if reading is broken off, all is read anew
        while first < len(ids):
            size = 1 if len(ids) - first == 1 else CHUNK
            some = ids[first : first + size]
            tokens = int32([*some, *[0] * (size - len(some))])
            positions = int32([*range(first, first + len(some)), *[-1] * (size - len(some))])
            logits, cache = _read(self._model, (tokens, positions, int32(first), int32(len(some)), cache))
            first += len(some)
        self._read, self._cache = list(ids), cache
        return logits


@eqx.filter_jit(donate="all-except-first")
def _read(model, given: tuple):
    """The logits after the first `count` of some tokens, read behind `length` others, and the cache."""
    tokens, positions, length, count, cache = given
    x, cache = model.extend(tokens, rewound(cache, length), positions)
    return model.logits(jax.lax.dynamic_slice_in_dim(x, count - 1, 1)), cache


_pick = eqx.filter_jit(pick)
