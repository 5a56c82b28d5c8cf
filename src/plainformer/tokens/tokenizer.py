"""What every tokenizer does, and how one is read back from its JSON."""

import functools
import inspect
import os
from collections.abc import Callable, Collection
from typing import Protocol, runtime_checkable

from plainformer.data.files import object_from_json, parse_json, spell_keys
from plainformer.data.lists import check_names
from plainformer.tokens.bpe import OTHERS_HINT, BytePairEncoder
from plainformer.tokens.hugging_face import HuggingFaceTokenizer
from plainformer.tokens.vocabulary import Vocabulary


@runtime_checkable
class Tokenizer(Protocol):
    """What turns text into ids and back, such as a `Vocabulary` or a `BytePairEncoder`.

    `special` has the ids of the tokens that stand for no text, by name; `len` returns the number of tokens.
    """

    special: dict[str, int]

    def encode(self, text: str) -> list[int]:
        """Turn text into ids."""

    def decode(self, ids) -> str:
        """Turn ids into text."""

    def __len__(self) -> int: ...

    def to_json(self) -> str:
        """Return the tokenizer as JSON, which `tokenizer_from_json` reads back."""

    def save(self, path: str | os.PathLike) -> None:
        """Write this JSON to a file."""


def encoder_of(tokenizer: Tokenizer, allowed_special: Collection[str]) -> Callable[[str], list[int]]:
    """Return what turns text into ids, names of these special tokens into theirs; raise `TypeError` if nothing can."""
    check_names("allowed_special", allowed_special, ordered=False)
    if not allowed_special:
        return tokenizer.encode
    if "allowed_special" not in inspect.signature(tokenizer.encode).parameters:
        raise TypeError(
            f"allowed_special is {allowed_special!r}; expected none with a {type(tokenizer).__name__}, whose encode "
            "has no such argument: put the ids in tokenizer.special among those of the text."
        )
    encode: Callable = tokenizer.encode
    return functools.partial(encode, allowed_special=allowed_special)


def tokenizer_from_json(text: str) -> Vocabulary | BytePairEncoder | HuggingFaceTokenizer:
    """Read back what `to_json` of one of them wrote; `ValueError` says what is wrong with any other text."""
    name = "the tokenizer"
    content = parse_json(text, name)
    if {"tokens", "separator"} <= content.keys():
        return object_from_json(Vocabulary, content, name)
    if {"vocabulary", "merges"} <= content.keys():
        return object_from_json(BytePairEncoder, content, name)
    if "hugging_face" in content:
        return object_from_json(HuggingFaceTokenizer, content, name)
    expected = "those of a saved Vocabulary or BytePairEncoder"
    raise ValueError(f"{name} has the keys {spell_keys(content)}; expected {expected}. {OTHERS_HINT}")
