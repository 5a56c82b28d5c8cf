"""Tokenizers that others have trained, by the library that made them, behind the interface of ours."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from plainformer.data.files import Name, as_path, read_json, read_text, write_text
from plainformer.data.lists import check_token_ids
from plainformer.tokens.conversations import conversation_text
from plainformer.tokens.streams import one_by_one, whole_graphemes

HINT = "Try pip install tokenizers, or do without it: tokenizer=False"


class HuggingFaceTokenizer:
    r"""A tokenizer of the library `tokenizers`, with the methods of a `BytePairEncoder`.

    Unlike ours it adds to a text what its model was trained to see, such as a start token.

    Args:
        hugging_face: the content of a `tokenizer.json`.
        chat_template: how a conversation is written as one text, in Jinja; `None` if the model has no such form.
        begin, end: the special tokens before a text and behind an answer; `None` if nothing is known of them.

    Raises:
        ImportError: if `tokenizers` is not installed.
        ValueError: if the content is not one that it reads.
    """

    def __init__(
        self, hugging_face: str, chat_template: str | None = None, begin: str | None = None, end: str | None = None
    ):
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ImportError(f"A tokenizer of this kind needs the library tokenizers. {HINT}.") from error
        try:
            self._tokenizer = Tokenizer.from_str(hugging_face)
        except Exception as error:  # it raises nothing more exact
            raise ValueError(f"the library tokenizers cannot read it: {error}.") from error
        self._tokenizer.no_truncation()  # a text that is too long is for the model to refuse
        self._tokenizer.no_padding()
        self.chat_template, self.begin, self.end = chat_template, begin, end

    @property
    def special(self) -> dict[str, int]:
        """The ids of the special tokens by name."""
        added = self._tokenizer.get_added_tokens_decoder()
        return {token.content: number for number, token in added.items() if token.special}

    def encode(self, text: str) -> list[int]:
        """Turn text into ids, with the special tokens that its model expects around it."""
        if not isinstance(text, str):
            raise TypeError(f"text is a {type(text).__name__}; expected a string.")
        return self._tokenizer.encode(_whole(text)).ids

    def encode_conversation(self, messages: Sequence[Mapping[str, str]], *, answer: bool = True) -> list[int]:
        """Turn a conversation into ids, by the `chat_template`; as for `conversation_text`."""
        if self.chat_template is None:
            raise ValueError("The tokenizer has no chat_template; expected that of a model trained for conversations.")
        begin, end = self.begin or "", self.end or ""
        text = conversation_text(self.chat_template, messages, answer=answer, begin=begin, end=end)
        return self._tokenizer.encode(_whole(text), add_special_tokens=False).ids

    def decode(self, ids) -> str:
        """Turn ids, a list or an array, into text; special tokens appear by name."""
        return self._tokenizer.decode([int(n) for n in check_token_ids(ids, len(self))], skip_special_tokens=False)

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of ids as they come, in whole characters only; joined, it is what `decode` returns."""
        return whole_graphemes(self._pieces(ids))

    def _pieces(self, ids: Iterable[int]) -> Iterator[str]:
        from tokenizers.decoders import DecodeStream

        stream, seen, shown = DecodeStream(skip_special_tokens=False), [], 0
        for number in one_by_one(ids, len(self)):
            seen.append(int(number))
            if (piece := stream.step(self._tokenizer, seen[-1])) is not None:
                shown += len(piece)
                yield piece
        yield self.decode(seen)[shown:]

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def __repr__(self) -> str:
        return f"HuggingFaceTokenizer({len(self)} tokens, special {list(self.special)})"

    def to_json(self) -> str:
        """Return the tokenizer as JSON, which `tokenizer_from_json` reads back."""
        kept = {"chat_template": self.chat_template, "begin": self.begin, "end": self.end}
        return json.dumps({"hugging_face": self._tokenizer.to_str(), **kept})

    def save(self, path: str | os.PathLike) -> None:
        """Write this JSON to a file."""
        write_text(path, self.to_json())

    def save_hugging_face(self, folder: Name) -> None:
        """Write the files from which `tokenizers` and `transformers` read it, into a folder that exists."""
        write_text(as_path(folder) / "tokenizer.json", self._tokenizer.to_str(pretty=True))
        if self.chat_template is not None:
            write_text(as_path(folder) / "chat_template.jinja", self.chat_template)

    @classmethod
    def in_folder(cls, folder: Name) -> "HuggingFaceTokenizer | None":
        """Read `tokenizer.json` in a folder, with the template of a conversation if there is one; `None` without it."""
        path = as_path(folder) / "tokenizer.json"
        if not path.exists():
            return None
        template = _chat_template(as_path(folder))
        ends = [_special(as_path(folder), name) for name in ("bos_token", "eos_token")]
        try:
            return cls(read_text(path), template, *ends)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def _whole(text: str) -> str:
    """The text, if it has no half of a character, as broken bytes that were read leave it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"The text has {text[error.start]!r} at {error.start}, which is no whole character.") from None
    return text


def _chat_template(folder: Path) -> str | None:
    """The template in a file of its own, or in the tokenizer's configuration; of several, the one that is named so."""
    if (path := folder / "chat_template.jinja").exists():
        return read_text(path)
    path = folder / "tokenizer_config.json"
    template = read_json(path).get("chat_template") if path.exists() else None
    if isinstance(template, list):
        named = [each for each in template if isinstance(each, dict) and each.get("name") == "default"]
        template = named[0].get("template") if named else None
    return _string(template, path, "chat_template")


def _special(folder: Path, name: str) -> str | None:
    """A special token, as the tokenizer's configuration names it."""
    path = folder / "tokenizer_config.json"
    token = read_json(path).get(name) if path.exists() else None
    return _string(token.get("content") if isinstance(token, dict) else token, path, name)


def _string(found, path: Path, name: str) -> str | None:
    if not isinstance(found, str | None):
        raise ValueError(f"{path} has {name}={found!r}; expected a string.")
    return found
