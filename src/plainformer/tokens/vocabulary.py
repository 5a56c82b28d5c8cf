"""Vocabularies of whole words or characters (chapter 01)."""

from collections.abc import Collection, Iterable

from plainformer.checks import check_names, check_token_ids


class Vocabulary:
    r"""A numbered list of tokens: each word, or each character, has one id.

    Implements `eq-tokens-vocabulary`. The special tokens come first, in the order given; the others follow in the
    order of their code points, so that the same tokens always get the same ids. Text never turns into a special
    token, even if it spells one's name: put `vocabulary.special["<start>"]` among the ids yourself.

    **Arguments**

    - `tokens`: the ordinary tokens, in any order, repeated or not.
    - `special`: names of tokens that stand for no text, such as `"<start>"`, in an order: a list, not a set.
    - `unknown`: the name in `special` that stands for every token not in the vocabulary; `None` to raise instead.
    - `separator`: what stands between two tokens: a space for words, nothing for characters.

    **Raises** `ValueError` if there are no tokens, or the separator would cut one of them in two, or a special name is
    repeated or also an ordinary token, or `unknown` is not among the special tokens.
    """

    def __init__(
        self, tokens: Iterable[str], *, special: Collection[str] = (), unknown: str | None = None, separator: str = ""
    ):
        ordinary = sorted(_check_strings(tokens))
        if not ordinary:
            raise ValueError("tokens is empty; expected at least one token to number. Is the text empty?")
        for token in ordinary:
            _check_whole(token, separator)
        check_names("special", special)
        if len(set(special)) < len(special) or not set(special).isdisjoint(ordinary):
            raise ValueError(
                f"special tokens {list(special)} are repeated, or stand in the text too; expected names of their own."
            )
        if unknown is not None and unknown not in special:
            raise ValueError(f"unknown is {unknown!r}; expected one of the special tokens {list(special)}.")
        self.tokens = (*special, *ordinary)
        self.special = {name: number for number, name in enumerate(special)}
        self.separator = separator
        self._ids = {token: number for number, token in enumerate(ordinary, start=len(special))}
        self._unknown = None if unknown is None else self.special[unknown]

    @classmethod
    def from_words(cls, text: str, *, special: Collection[str] = (), unknown: str | None = None) -> "Vocabulary":
        """Number the words of `text`: whatever stands between single spaces, line breaks and commas included."""
        return cls(_split(text, " "), special=special, unknown=unknown, separator=" ")

    @classmethod
    def from_characters(cls, text: str, *, special: Collection[str] = (), unknown: str | None = None) -> "Vocabulary":
        """Number the characters (code points) of `text`."""
        return cls(_split(text, ""), special=special, unknown=unknown, separator="")

    def encode(self, text: str) -> list[int]:
        """Give the id of each token of `text`; an unknown one raises `ValueError` or becomes the unknown token."""
        ids = []
        for position, token in enumerate(_split(text, self.separator)):
            number = self._ids.get(token, self._unknown)
            if number is None:
                raise ValueError(self._not_found(token, position))
            ids.append(number)
        return ids

    def decode(self, ids) -> str:
        """Join the tokens with these ids; undoes `encode` exactly, unless there were unknown tokens."""
        return self.separator.join(self.tokens[number] for number in check_token_ids(ids, len(self)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, special {list(self.special)})"

    def _not_found(self, token: str, position: int) -> str:
        if token in self.special:
            return (
                f"Token {token!r} at position {position} is the name of a special token, and text never becomes one. "
                f"Put the id vocabulary.special[{token!r}] among the ids yourself."
            )
        return (
            f"Token {token!r} at position {position} is not among the {len(self)} tokens of this vocabulary. Build it "
            "from a text that has this token, or give it special=['<unknown>'], unknown='<unknown>'."
        )


def _check_strings(tokens: Iterable[str]) -> set[str]:
    distinct = set(tokens)
    for token in distinct:
        if not isinstance(token, str):
            raise TypeError(f"tokens holds {token!r}; expected strings.")
    return distinct


def _check_whole(token: str, separator: str) -> None:
    if not separator and len(token) != 1:
        raise ValueError(
            f"Token {token!r} is not a single character, but separator '' cuts text into characters, so it would never "
            "be found. For words, pass separator=' '."
        )
    if separator and separator in token:
        raise ValueError(f"Token {token!r} holds the separator {separator!r}, which would cut it in two.")


def _split(text: str, separator: str) -> list[str]:
    if not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}; expected a string.")
    return text.split(separator) if separator and text else list(text)
