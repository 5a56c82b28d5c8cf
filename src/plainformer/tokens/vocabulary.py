"""Vocabularies of whole words or characters (chapter on tokens)."""

import json
import os
from collections.abc import Collection, Iterable, Iterator

from plainformer.data.files import object_from_json, read_json, write_text
from plainformer.data.lists import check_names, check_token_ids
from plainformer.tokens.streams import one_by_one, whole_graphemes


class Vocabulary:
    r"""A numbered list of tokens: each word, or each character, has one id.

    Implements `eq-tokens-vocabulary`. The special tokens come first, in the order given; the others follow in the
    order of their code points, so that the same tokens always get the same ids. Text never turns into a special
    token, even if it spells one's name: put `vocabulary.special["<start>"]` among the ids yourself.

    Args:
        tokens: the ordinary ones, in any order, repeated or not.
        special: names of tokens that stand for no text, such as `"<start>"`.
        unknown: the one of them that stands for every token not in the vocabulary; `None` to raise instead.
        separator: what stands between two tokens: a space for words, nothing for characters.

    Example:
        >>> vocabulary = pf.Vocabulary(["to", "be", "or", "not"], separator=" ")
        >>> vocabulary.encode("to be or not to be")
        [3, 0, 2, 1, 3, 0]
        >>> vocabulary.decode([1, 0])
        'not be'
    """

    def __init__(
        self, tokens: Iterable[str], *, special: Collection[str] = (), unknown: str | None = None, separator: str = ""
    ):
        try:
            tokens = list(tokens)
        except TypeError:
            what = type(tokens).__name__
            raise TypeError(f"tokens is of type {what}; expected words or characters, such as a list.") from None
        _check_parts(tokens, special, unknown, separator)
        ordinary = sorted(set(tokens))
        self.tokens = (*special, *ordinary)
        self.special = {name: number for number, name in enumerate(special)}
        self.unknown = unknown
        self.separator = separator
        self._ids = {token: number for number, token in enumerate(ordinary, start=len(special))}

    @classmethod
    def from_words(cls, text: str, *, special: Collection[str] = (), unknown: str | None = None) -> "Vocabulary":
        """Number the words of `text`: whatever stands between single spaces, line breaks and commas included."""
        return cls(set(_split(text, " ")), special=special, unknown=unknown, separator=" ")

    @classmethod
    def from_characters(cls, text: str, *, special: Collection[str] = (), unknown: str | None = None) -> "Vocabulary":
        """Number the characters (code points) of `text`."""
        return cls(set(_split(text, "")), special=special, unknown=unknown, separator="")

    def encode(self, text: str) -> list[int]:
        """Return the id of each token of `text`; an unknown one raises `ValueError` or becomes the unknown token."""
        unknown = None if self.unknown is None else self.special[self.unknown]
        ids = []
        for position, token in enumerate(_split(text, self.separator)):
            number = self._ids.get(token, unknown)
            if number is None:
                raise ValueError(self._not_found(token, position))
            ids.append(number)
        return ids

    def decode(self, ids) -> str:
        """Join the tokens with these ids; undoes `encode` exactly, unless there were unknown tokens."""
        return self.separator.join(self.tokens[number] for number in check_token_ids(ids, len(self)))

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of ids as they come, in whole characters only; joined, it is what `decode` returns.

        The last character is held back until the next one begins, since what comes may belong to it: an accent, the
        rest of a flag or of a family.
        """
        tokens = (self.tokens[number] for number in one_by_one(ids, len(self)))
        return whole_graphemes(f"{self.separator if place else ''}{token}" for place, token in enumerate(tokens))

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, special {list(self.special)})"

    def to_json(self) -> str:
        """Return the vocabulary as JSON, which `tokenizer_from_json` reads back."""
        special, ordinary = list(self.special), self.tokens[len(self.special) :]
        parts = {"tokens": ordinary, "special": special, "unknown": self.unknown, "separator": self.separator}
        return json.dumps(parts)

    def save(self, path: str | os.PathLike) -> None:
        """Write the vocabulary to one JSON file; `FileNotFoundError` if the folder does not exist."""
        write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Read a file that `save` wrote; `ValueError` says what is wrong with any other."""
        return object_from_json(cls, read_json(path), path)

    def _not_found(self, token: str, position: int) -> str:
        what = f"Token {token!r} at position {position}"
        if token in self.special:
            hint = f"Put the id vocabulary.special[{token!r}] among the ids yourself."
            return f"{what} is the name of a special token, and text never becomes one. {hint}"
        hint = "Build it from a text that has this token, or give it special=['<unknown>'], unknown='<unknown>'."
        return f"{what} is not among the {len(self)} tokens of this vocabulary. {hint}"


def _split(text: str, separator: str) -> list[str]:
    if not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}; expected a string.")
    return text.split(separator) if separator and text else list(text)


def _check_parts(tokens: list[str], special: Collection[str], unknown: str | None, separator: str) -> None:
    if not isinstance(separator, str):
        raise TypeError(f"separator is {separator!r}; expected a string, such as ' '.")
    if not tokens:
        raise ValueError("tokens is empty; expected at least one token to number. Is the text empty?")
    for token in tokens:
        if not isinstance(token, str):
            raise TypeError(f"tokens holds {token!r}; expected strings.")
        if not separator and len(token) != 1:
            cause = "is not a single character, into which separator '' cuts text"
            raise ValueError(f"Token {token!r} {cause}. For words, pass separator=' '.")
        if separator and separator in token:
            raise ValueError(f"Token {token!r} holds the separator {separator!r}, which would cut it in two.")
    check_names("special", special)
    if len(set(special)) < len(special) or not set(special).isdisjoint(tokens):
        raise ValueError(f"special tokens {list(special)} are repeated, or stand in the text too; rename them.")
    if unknown is not None and (not isinstance(unknown, str) or unknown not in special):
        raise ValueError(f"unknown is {unknown!r}; expected one of the special tokens {list(special)}.")
