"""Byte-level byte-pair encoding: train it, apply it, and exchange its files with others (chapter on tokens)."""

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from plainformer.checks import Natural, Positive, checked
from plainformer.data.files import object_from_json, read_json, write_text
from plainformer.data.lists import check_names, check_once, check_token_ids
from plainformer.tokens.formats import parts_of_gpt2, parts_of_tokenizer, tokenizer_of_parts
from plainformer.tokens.merges import (
    GPT2_PATTERN,
    apply_merges,
    byte_alphabet,
    certain_pieces,
    check_pattern,
    learn_merges,
    pre_tokenise,
)
from plainformer.tokens.streams import one_by_one, text_of_bytes, whole_characters, whole_graphemes

OTHERS_HINT = (
    "For GPT-2's vocab.json and merges.txt use BytePairEncoder.from_gpt2, "
    "for Hugging Face's tokenizer.json BytePairEncoder.from_hugging_face."
)


class BytePairEncoder:
    """A byte-level byte-pair encoder: any text and any bytes to ids, and exactly back.

    Made by `BytePairEncoder.train`, `load`, `from_gpt2` or `from_hugging_face`, or from its parts. Has `tokens` (the
    bytes of each token, by id), `merges`, `vocabulary`, `special` (name to id), `pattern` and `whole_pieces`.

    Args:
        vocabulary: token, written in `byte_alphabet`, to id, special ones included.
        merges: pairs of tokens, first learned first.
        special: which names in the vocabulary stand for no text: no text becomes one, unless `encode` is told so by
            name.
        pattern: how text is cut into pieces, as `pre_tokenise` has it.
        whole_pieces: whether a piece that is a token as it stands becomes that token, whatever the merges make of it,
            as Llama 3 does it.

    Example:
        Four merges, and what is frequent has become a single token.

        >>> encoder = pf.BytePairEncoder.train("the cat, the hat, the bat", vocab_size=260)
        >>> [encoder.decode([number]) for number in encoder.encode("the rat")]
        ['the', ' ', 'r', 'at']
    """

    @checked
    def __init__(
        self,
        vocabulary: Mapping[str, int],
        merges: Sequence[Sequence[str]],
        special: Collection[str] = (),
        pattern: str = GPT2_PATTERN,
        whole_pieces: bool = False,
    ):
        check_pattern(pattern)
        _check_parts(vocabulary, merges, special)
        _check_all_made(vocabulary, merges, special, whole_pieces)
        self.pattern, self.whole_pieces = pattern, whole_pieces
        self.vocabulary = dict(vocabulary)
        self.merges = tuple((a, b) for a, b in merges)
        by_id = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        self.special = {name: self.vocabulary[name] for name in by_id if name in special}
        byte_of = {character: byte for byte, character in byte_alphabet().items()}
        self.tokens = tuple(
            _to_bytes(token) if token in self.special else bytes(byte_of[character] for character in token)
            for token in by_id
        )
        self._byte_ids = [self.vocabulary[character] for _, character in sorted(byte_alphabet().items())]
        self._rules = {
            (self.vocabulary[a], self.vocabulary[b]): (rank, self.vocabulary[a + b])
            for rank, (a, b) in enumerate(self.merges)
        }
        ordinary = {self.tokens[n]: n for n, name in enumerate(by_id) if name not in self.special}
        self._whole = ordinary if whole_pieces else {}
        self._cache: dict[bytes, list[int]] = {}

    @classmethod
    @checked
    def train(
        cls,
        text: str,
        vocab_size: Positive,
        *,
        special: Collection[str] = (),
        min_count: Natural = 1,
        pattern: str = GPT2_PATTERN,
    ) -> "BytePairEncoder":
        """Learn merges from `text` until there are `vocab_size` tokens, or nothing is left to merge.

        The 256 bytes come first, then the merges by `learn_merges`, which also says how ties are broken, and why a long
        piece without a space is slow; then the special tokens. Pairs that occur less often than `min_count` are not
        merged. The text is cut by `pattern`, as `pre_tokenise` has it; and first by the names of the special tokens,
        so that no merge is made of their letters.
        """
        check_pattern(pattern)
        check_names("special", special)
        _check_text(text)
        if not text:
            raise ValueError("text is empty; expected text to learn merges from.")
        num_merges = vocab_size - 256 - len(special)
        if num_merges < 0:
            raise ValueError(f"vocab_size is {vocab_size}; expected at least 256 bytes + {len(special)} special ones.")
        alphabet = byte_alphabet()
        id_of = {byte: number for number, byte in enumerate(alphabet)}
        between = _finder(special).split(text)
        counts = Counter(piece for part in between for piece in pre_tokenise(part, pattern))
        pieces = {tuple(id_of[byte] for byte in _to_bytes(piece)): times for piece, times in counts.items()}
        tokens, merges = list(alphabet.values()), []
        for a, b in learn_merges(pieces, num_merges, min_count=min_count):
            merges.append((tokens[a], tokens[b]))
            tokens.append(tokens[a] + tokens[b])
        tokens.extend(special)
        vocabulary = {token: number for number, token in enumerate(tokens)}
        if len(vocabulary) < len(tokens):
            twice = next(token for token, times in Counter(tokens).items() if times > 1)
            raise ValueError(f"special holds {twice!r}, which is among the tokens already; rename it.")
        return cls(vocabulary, merges, special, pattern)

    def encode(self, text: str, *, allowed_special: Collection[str] = ()) -> list[int]:
        """Turn text into ids; names of special tokens in it, too, are text like any other unless they are allowed.

        Implements `eq-subwords-encode`. A lone surrogate, which no valid text holds but a Python string may, is encoded
        as its three bytes.
        """
        _check_text(text)
        names = self._named(allowed_special)
        ids: list[int] = []
        end = 0
        for name in names.finditer(text):
            ids += [*self._encode_pieces(text[end : name.start()], "surrogatepass"), self.special[name[0]]]
            end = name.end()
        return ids + self._encode_pieces(text[end:], "surrogatepass")

    def encode_stream(self, texts: Iterable[str], *, allowed_special: Collection[str] = ()) -> Iterator[int]:
        """Yield the ids of many texts, such as the lines of an open file, as if they were joined and encoded at once.

        Wherever the texts are cut, the ids are those of `encode("".join(texts))`. What further text could change is
        held back: the last piece or two of `pre_tokenise`, or the beginning of an allowed name. That is at most about
        twice as long as the longest of these, beside one of the texts.
        """
        if not isinstance(texts, Iterable) or getattr(texts, "shape", None) == ():
            raise TypeError(f"texts is {texts!r}; expected texts one after the other, such as an open file.")
        return self._stream(texts, allowed_special, self._named(allowed_special))

    def _stream(self, texts: Iterable[str], allowed: Collection[str], names: re.Pattern) -> Iterator[int]:
        longest = max(map(len, allowed), default=1)
        held, enough = "", 0
        for text in texts:
            _check_text(text)
            held += text
            if len(held) >= enough:  # else too little has come since it was last looked at: a long piece is not done
                ids, end = self._encode_certain(held, names, longest)
                yield from ids
                held = held[end:]
                enough = 2 * len(held)
        yield from self.encode(held, allowed_special=allowed)

    def _encode_certain(self, text: str, names: re.Pattern, longest: int) -> tuple[list[int], int]:
        """The ids at the start of a text that no text after it can change, and how many characters they stand for."""
        ids: list[int] = []
        end, certain = 0, len(text) - longest + 1  # a name that begins before it is not part of a longer one
        for name in names.finditer(text):
            if name.start() >= certain:
                break
            ids += [*self._encode_pieces(text[end : name.start()], "surrogatepass"), self.special[name[0]]]
            end = name.end()
        for piece in certain_pieces(text[end : max(certain, end)], self.pattern):
            ids += self._encode_piece(_to_bytes(piece))
            end += len(piece)
        return ids, end

    def _named(self, allowed: Collection[str]) -> re.Pattern:
        """What finds the allowed names in a text, the longest of those that begin at one place."""
        check_names("allowed_special", allowed, ordered=False)
        if unknown := set(allowed) - set(self.special):
            raise ValueError(f"allowed_special names {sorted(unknown)}; the special tokens are {list(self.special)}.")
        return _finder(allowed)

    def encode_bytes(self, data: bytes) -> list[int]:
        """Turn any bytes into ids: those of `encode` where they are UTF-8, and no error where they are not."""
        if not isinstance(data, bytes):
            raise TypeError(f"data is a {type(data).__name__}; expected bytes. For a string, use encode.")
        return self._encode_pieces(data.decode("utf-8", "surrogateescape"), "surrogateescape")

    def decode(self, ids) -> str:
        """Turn ids, a list or an array, into text; undoes `encode` exactly.

        Special tokens appear by name, and bytes that are not UTF-8, as when a character is cut in two, as U+FFFD. Those
        of a lone surrogate, which a Python string may hold and a file may not, become one again.
        """
        return text_of_bytes(self.decode_bytes(ids))

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of ids as they come, in whole characters only; joined, it is what `decode` returns.

        The last character is held back until the next one begins, since what comes may belong to it: further bytes, an
        accent, the rest of a flag or of a family.

        Example:
            An emoji of eleven bytes, which came one by one.

            >>> encoder = pf.BytePairEncoder.train("ok", vocab_size=256)
            >>> list(encoder.decode_stream(encoder.encode("ok 👩‍👧!")))
            ['o', 'k', ' ', '👩\u200d👧', '!']
        """
        return whole_graphemes(whole_characters(self.tokens[number] for number in one_by_one(ids, len(self))))

    def decode_bytes(self, ids) -> bytes:
        """Join the bytes of the tokens; undoes `encode_bytes` exactly."""
        return b"".join(self.tokens[number] for number in check_token_ids(ids, len(self)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"BytePairEncoder({len(self)} tokens, {len(self.merges)} merges, special {list(self.special)})"

    def _encode_pieces(self, text: str, errors: str) -> list[int]:
        return [
            n for piece in pre_tokenise(text, self.pattern) for n in self._encode_piece(piece.encode("utf-8", errors))
        ]

    def _encode_piece(self, piece: bytes) -> list[int]:
        if (known := self._cache.get(piece)) is not None:
            return known
        whole = self._whole.get(piece)
        ids = apply_merges([self._byte_ids[byte] for byte in piece], self._rules) if whole is None else [whole]
        if len(piece) <= 64:  # words repeat, so a cache pays; but it must not grow for ever
            if len(self._cache) >= 50_000:
                self._cache.clear()
            self._cache[piece] = ids
        return ids

    def to_json(self) -> str:
        """Return the encoder as JSON, which `tokenizer_from_json` reads back."""
        return json.dumps(self._parts())

    def _parts(self) -> dict:
        """The arguments that make this encoder again."""
        parts = {"vocabulary": self.vocabulary, "merges": self.merges, "special": list(self.special)}
        return parts | {"pattern": self.pattern, "whole_pieces": self.whole_pieces}

    def save(self, path: str | os.PathLike) -> None:
        """Write the encoder to one JSON file; `FileNotFoundError` if the folder does not exist."""
        write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "BytePairEncoder":
        """Read a file that `save` wrote; `ValueError` says what is wrong with any other."""
        return object_from_json(cls, read_json(path), path, OTHERS_HINT)

    @classmethod
    @checked
    def from_gpt2(
        cls, vocab_path: str | os.PathLike, merges_path: str | os.PathLike, *, special: Collection[str] | None = None
    ) -> "BytePairEncoder":
        """Read GPT-2's two files, usually `vocab.json` and `merges.txt`, or any in their format.

        `special` has the special tokens in the vocabulary: `<|endoftext|>`, if it is there, unless others are given.

        Raises:
            ValueError: if a file is corrupt or the two do not belong together.
            FileNotFoundError: if one of them does not exist.
        """
        parts = parts_of_gpt2(vocab_path, merges_path, special)
        try:
            return cls(**parts)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{vocab_path} and {merges_path}: {error}") from error

    @classmethod
    def from_hugging_face(cls, path: str | os.PathLike) -> "BytePairEncoder":
        """Read a `tokenizer.json` of Hugging Face's `tokenizers`, if it is byte-level byte-pair encoding.

        `encode(text, allowed_special=encoder.special)` gives the ids of their `encode(text, add_special_tokens=False)`.
        The two differ in a text that spells the name of a special token: theirs makes that token of it unless its
        `encode_special_tokens` is true, ours only where it is allowed. What theirs adds around a text is not read.

        Raises:
            ValueError: if the file asks for what would make other ids of a text, such as a normalizer.
            FileNotFoundError: if it does not exist.
        """
        content = read_json(path)
        try:
            return cls(**parts_of_tokenizer(content))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error

    def save_hugging_face(self, path: str | os.PathLike) -> None:
        """Write the encoder as a `tokenizer.json` that `tokenizers.Tokenizer.from_file` opens.

        Text gets the same ids there; for the names of special tokens in it, see `from_hugging_face`.
        """
        write_text(path, json.dumps(tokenizer_of_parts(**self._parts()), ensure_ascii=False, indent=1))


def _finder(names: Collection[str]) -> re.Pattern:
    """What finds these names in a text, the longest of those that begin at one place."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")  # without names, one that finds nothing


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}; expected a string. For bytes, use encode_bytes.")


def _check_parts(vocabulary, merges, special) -> None:
    """Raise `TypeError` if one of the parts is something else, as in a bad file; `ValueError` if they do not fit."""
    if not isinstance(vocabulary, Mapping) or not all(type(number) is int for number in vocabulary.values()):
        raise TypeError("the vocabulary must give each token a whole number.")
    if not isinstance(merges, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in merges):
        raise TypeError("merges must be a list of pairs.")
    if not all(isinstance(token, str) for tokens in (vocabulary, *merges) for token in tokens):
        raise TypeError("every token must be a string.")
    check_names("special", special, ordered=False)  # their ids stand in the vocabulary
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(f"the ids of {len(vocabulary)} tokens must be 0 to {len(vocabulary) - 1}, each once.")
    if missing := set(byte_alphabet().values()) - vocabulary.keys():
        hint = "With Hugging Face's trainer, give initial_alphabet=ByteLevel.alphabet()."
        raise ValueError(f"the vocabulary lacks {len(missing)} of the 256 bytes, such as {min(missing)!r}. {hint}")
    check_once("merges", map(tuple, merges))
    if unknown := set(special) - vocabulary.keys():
        raise ValueError(f"the special token {min(unknown)!r} is not in the vocabulary.")


def _check_all_made(vocabulary, merges, special, whole_pieces: bool) -> None:
    """Raise `ValueError` unless the bytes and the merges, each after those that it builds on, make all tokens.

    Where several merges make one token, as in files made from tiktoken's, this holds for one of them; and where whole
    pieces become tokens, a token needs no merge.
    """
    alphabet = set(byte_alphabet().values())
    made, early = set(alphabet), {}
    for rank, (a, b) in enumerate(merges):
        merge = f"merge {rank}, {a!r} with {b!r}"
        if missing := {a, b} - made:
            early[a + b] = f"{merge}: no byte and no earlier merge makes {min(missing)!r}."
            if missing - vocabulary.keys():
                raise ValueError(early[a + b])
        if a + b not in vocabulary:
            raise ValueError(f"{merge}: the vocabulary has no {a + b!r}.")
        if not missing:
            made.add(a + b)
    if not whole_pieces and (unmade := early.keys() - made):
        raise ValueError(early[min(unmade)])
    if ordinary := made & set(special):
        raise ValueError(f"the special token {min(ordinary)!r} is an ordinary token too.")
    left = vocabulary.keys() - made - set(special)
    if left := {token for token in left if not whole_pieces or set(token) - alphabet}:
        hint = "Either merges are missing, or these are special tokens: then name them in `special`."
        raise ValueError(f"no merge makes {len(left)} tokens of the vocabulary, such as {min(left)!r}. {hint}")
