"""Where a text ends: at a token, or at a string, wherever its tokens are cut (chapter on generation)."""

from collections.abc import Sequence
from typing import TypedDict

import jax
from jaxtyping import Array, Int

from plainformer.data.lists import check_list, check_token_ids
from plainformer.generation.prompts import int32
from plainformer.tokens.tokenizer import Tokenizer


class Stopping(TypedDict, total=False):
    """What all ways of writing take by keyword, for type checkers."""

    stop_tokens: Sequence[int | str]
    tokenizer: Tokenizer | None


def stop_ids(
    stop_tokens, vocab_size: int, own: Sequence[int] = (), *, tokenizer: Tokenizer | None = None
) -> Int[Array, " num_stop_tokens"]:
    """Return the stop tokens, each an id or the name of a special one, as an array; behind them the model's `own`."""
    if isinstance(stop_tokens, str):
        raise TypeError(
            f"stop_tokens is the string {stop_tokens!r}; expected a list of ids, or of names of special tokens, such "
            f"as [{stop_tokens!r}]. In `generate`, stop={stop_tokens!r} ends a text at a string."
        )
    check_list("stop_tokens", stop_tokens, "ids after which a text ends, such as [0]; [] for none")
    if not isinstance(stop_tokens, jax.Array):
        stop_tokens = [_special_id(each, tokenizer) if isinstance(each, str) else each for each in stop_tokens]
    return int32([*check_token_ids(stop_tokens, vocab_size, "stop_tokens"), *own])


def _special_id(name: str, tokenizer: Tokenizer | None) -> int:
    if tokenizer is None:
        raise ValueError(f"stop_tokens names {name!r}, and there is no tokenizer that knows it: pass tokenizer=…, too.")
    if name not in tokenizer.special:
        raise ValueError(
            f"stop_tokens names {name!r}; expected ids, or special tokens, which are {list(tokenizer.special)}. In "
            f"`generate`, stop={name!r} ends a text at a string."
        )
    return tokenizer.special[name]


def text_of(tokens: list[int], stopped: bool, tokenizer: Tokenizer | None) -> str | None:
    """Return what was written as text, without the token that stopped it; `None` without a tokenizer."""
    return None if tokenizer is None else tokenizer.decode(tokens[:-1] if stopped else tokens)


def stop_strings(stop: str | Sequence[str], tokenizer: Tokenizer | None) -> tuple[str, ...]:
    """Return the strings at which texts end; raise if one is none, or nobody says how they are written."""
    strings = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, Sequence) else (stop,)
    for each in strings:
        if not isinstance(each, str):
            raise TypeError(f"stop has {each!r}; expected strings, such as '\\n\\n'. Ids of tokens are stop_tokens.")
        if not each:
            raise ValueError("stop has an empty string, at which every text would end; expected a character or more.")
    if strings and tokenizer is None:
        raise ValueError(f"stop is {stop!r}, and there is no tokenizer that writes it: pass tokenizer=…, too.")
    return strings


class Written:
    """A text while it is written: where it ends, and which of its ids no further token can take back.

    Args:
        stop: strings at which the text ends, before the first of them.
        tokenizer: what turns ids into text; `None` if there is no such string.
    """

    def __init__(self, stop: tuple[str, ...], tokenizer: Tokenizer | None):
        self.ids: list[int] = []
        self.log_probs: list[float] = []
        self.stopped = False
        self.end: int | None = None
        self._stop, self._tokenizer, self._certain = stop, tokenizer, 0

    def append(self, token: int, log_prob: float, stopped: bool) -> None:
        """Take in the next token, its log-probability, and whether it is one that stops the text."""
        self.ids.append(token)
        self.log_probs.append(log_prob)
        self.stopped = stopped
        if self._stop and not stopped and self._may_have_ended():
            text = self._text_of(len(self.ids))
            found = [place for each in self._stop if (place := text.find(each)) >= 0]
            self.end = min(found) if found else None
            self.stopped = bool(found)

    def _may_have_ended(self) -> bool:
        """Whether a stop string is in the text of the last ids: four for each of its characters, and some more."""
        assert self._tokenizer is not None
        tail = self._tokenizer.decode(self.ids[-4 * (1 + max(map(len, self._stop))) :])
        return any(each in tail for each in self._stop)

    @property
    def text(self) -> str | None:
        """What was written, without what stopped it; `None` without a tokenizer."""
        if self.end is not None:
            return self._text_of(len(self.ids))[: self.end]
        return text_of(self.ids, self.stopped, self._tokenizer)

    def released(self, is_over: bool) -> list[int]:
        """Return the ids that are certain by now and were not returned before; of a text that is over, all the others.

        What may still become a stop string is held back. Where one began within a token, the characters before it are
        encoded anew.
        """
        start, number = self._certain, len(self.ids)
        if self.end is not None:
            self._certain = self._first_beyond(self.end)
            between = self._text_of(number)[len(self._text_of(self._certain)) : self.end]
            return self.ids[start : self._certain] + (self._encoded(between) if between else [])
        if self._stop and not is_over:
            text = self._text_of(number)
            number = self._first_beyond(len(text) - self._held(text))
        self._certain = max(start, number)
        return self.ids[start : self._certain]

    def _first_beyond(self, length: int) -> int:
        """How many of the ids, from those that are certain, make a text of at most this length."""
        number = self._certain
        while number < len(self.ids) and len(self._text_of(number + 1)) <= length:
            number += 1
        return number

    def _held(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a stop string."""
        most = min(max(map(len, self._stop)) - 1, len(text))
        begun = (size for size in range(most, 0, -1) if any(each.startswith(text[-size:]) for each in self._stop))
        return next(begun, 0)

    def _text_of(self, number: int) -> str:
        assert self._tokenizer is not None
        return self._tokenizer.decode(self.ids[:number])

    def _encoded(self, text: str) -> list[int]:
        assert self._tokenizer is not None
        return list(self._tokenizer.encode(text))
