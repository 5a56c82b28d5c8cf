"""Byte-level byte-pair encoding: train it, apply it, and read GPT-2's files (chapter 01)."""

import heapq
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise

from plainformer.checks import check_names, check_positive, check_token_ids
from plainformer.data.files import read_json, read_text, write_text
from plainformer.tokens.merges import byte_alphabet, check_consistent, learn_merges, pre_tokenise

_GONE = -1  # stands where a token was that has been merged into its left neighbour


class BytePairEncoder:
    r"""A byte-level byte-pair encoder: any text and any bytes to ids, and exactly back.

    Made by `BytePairEncoder.train`, `BytePairEncoder.load` or `BytePairEncoder.from_gpt2`. Has `tokens` (the bytes of
    each token, by id), `merges` (pairs written in `byte_alphabet`, in order), `vocabulary` (token in that alphabet to
    id) and `special` (name to id). `len` gives the number of tokens.

    **Arguments**

    - `vocabulary`: the id of each token, special ones included; ids are 0 to n - 1.
    - `merges`: pairs of tokens, first learned first.
    - `special`: which names in the vocabulary are special tokens: they stand for no text, and no text becomes one
      unless `encode` is told so by name.

    **Raises** `ValueError` if the three do not fit together.
    """

    def __init__(self, vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]], special: Collection[str] = ()):
        self.vocabulary = dict(vocabulary)
        self.merges = tuple(merges)
        made = check_consistent(self.vocabulary, self.merges, special)
        self.special = {name: self.vocabulary[name] for name in sorted(special, key=self.vocabulary.__getitem__)}
        byte_of = {character: byte for byte, character in byte_alphabet().items()}
        tokens = {number: _to_bytes(name) for name, number in self.special.items()}
        tokens |= {self.vocabulary[token]: bytes(map(byte_of.__getitem__, token)) for token in made}
        self.tokens = tuple(tokens[number] for number in range(len(tokens)))
        ids = self.vocabulary
        self._rank = {(ids[a], ids[b]): rank for rank, (a, b) in enumerate(self.merges)}
        self._merged = [ids[a + b] for a, b in self.merges]
        self._byte_ids = [ids[character] for _, character in sorted(byte_alphabet().items())]
        self._cache: dict[bytes, list[int]] = {}

    @classmethod
    def train(
        cls, text: str, vocab_size: int, *, special: Collection[str] = (), min_count: int = 1
    ) -> "BytePairEncoder":
        r"""Learn merges from `text` until there are `vocab_size` tokens.

        The 256 bytes come first, then the merges by `learn_merges`, which also says how ties are broken, then the
        special tokens.

        **Arguments**

        - `text`: what to learn from.
        - `vocab_size`: bytes, merges and special tokens together; fewer come out if nothing is left to merge.
        - `special`: names of special tokens, in the order of their ids: a list, not a set.
        - `min_count`: do not merge a pair that occurs less often than this.

        **Raises** `ValueError` if the text is empty or `vocab_size` is too small for the bytes and special tokens;
        `TypeError` if `vocab_size` is no whole number, or `special` no ordered collection of names.

        A long piece without a space is slow to learn from, as `learn_merges` explains.
        """
        check_positive(vocab_size=vocab_size)
        if not _check_text(text):
            raise ValueError("text is empty; expected text to learn merges from.")
        check_names("special", special)
        num_merges = vocab_size - 256 - len(special)
        if num_merges < 0:
            raise ValueError(
                f"vocab_size is {vocab_size}; expected at least 256 bytes + {len(special)} special tokens."
            )
        order = {byte: number for number, byte in enumerate(byte_alphabet())}
        pieces = {
            tuple(order[byte] for byte in _to_bytes(piece)): times
            for piece, times in Counter(pre_tokenise(text)).items()
        }
        spelled = list(byte_alphabet().values())
        merges = []
        for a, b in learn_merges(pieces, num_merges, min_count=min_count):
            merges.append((spelled[a], spelled[b]))
            spelled.append(spelled[a] + spelled[b])
        spelled.extend(special)
        vocabulary = {token: number for number, token in enumerate(spelled)}
        if len(vocabulary) < len(spelled):
            raise ValueError(f"special tokens {list(special)} repeat each other or a token of the text; rename them.")
        return cls(vocabulary, merges, special)

    def encode(self, text: str, *, allowed_special: Collection[str] = ()) -> list[int]:
        r"""Turn text into ids.

        Implements `eq-tokens-encode`. A lone surrogate, which no valid text holds but a Python string may, is encoded
        as its three bytes.

        **Arguments**

        - `text`: any string.
        - `allowed_special`: names of special tokens to look for in the text. All others are text like any other.

        **Returns** the ids.

        **Raises** `ValueError` if an allowed name is not a special token here; `TypeError` if the text is no string.
        """
        _check_text(text)
        check_names("allowed_special", allowed_special, ordered=False)
        if unknown := set(allowed_special) - set(self.special):
            raise ValueError(f"allowed_special names {sorted(unknown)}; the special tokens are {list(self.special)}.")
        ids: list[int] = []
        # The capturing group keeps what it finds at the odd places. Longer names first: one may begin another.
        names = sorted(allowed_special, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, names))})", text) if names else [text]
        for n, part in enumerate(parts):
            if n % 2:
                ids.append(self.special[part])
            else:
                ids.extend(number for piece in pre_tokenise(part) for number in self._encode_piece(_to_bytes(piece)))
        return ids

    def encode_bytes(self, data: bytes) -> list[int]:
        """Turn any bytes into ids: those of `encode` where they are UTF-8, and no error where they are not."""
        if not isinstance(data, bytes):
            raise TypeError(f"data is a {type(data).__name__}; expected bytes. For a string, use encode.")
        pieces = pre_tokenise(data.decode("utf-8", "surrogateescape"))
        return [n for piece in pieces for n in self._encode_piece(piece.encode("utf-8", "surrogateescape"))]

    def decode(self, ids) -> str:
        r"""Turn ids into text; undoes `encode` exactly.

        **Arguments**

        - `ids`: a sequence or array of ids.

        **Returns** the text; special tokens appear by name. Bytes that are no UTF-8, as when a character is cut in
        two, appear as U+FFFD.

        **Raises** `ValueError` if an id is out of range.
        """
        data = self.decode_bytes(ids)
        for errors in ("strict", "surrogatepass"):
            try:
                return data.decode("utf-8", errors)
            except UnicodeDecodeError:
                continue
        return data.decode("utf-8", "replace")

    def decode_bytes(self, ids) -> bytes:
        """Join the bytes of the tokens; undoes `encode_bytes` exactly."""
        return b"".join(self.tokens[number] for number in check_token_ids(ids, len(self)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"BytePairEncoder({len(self)} tokens, {len(self.merges)} merges, special {list(self.special)})"

    def _encode_piece(self, piece: bytes) -> list[int]:
        if piece not in self._cache:
            if len(self._cache) > 50_000:  # words repeat, so a cache pays; but it must not grow for ever
                self._cache.clear()
            self._cache[piece] = self._merge([self._byte_ids[byte] for byte in piece])
        return self._cache[piece]

    def _merge(self, ids: list[int]) -> list[int]:
        r"""Apply the earliest learned merge that fits, leftmost first, until none fits.

        A heap of what could be merged, and a chain of who stands next to whom, keep the time near linear even for a
        piece of a million bytes without a space.
        """
        end = len(ids)
        after, before = list(range(1, end + 1)), list(range(-1, end - 1))
        heap = [(self._rank[pair], n) for n, pair in enumerate(pairwise(ids)) if pair in self._rank]
        heapq.heapify(heap)
        while heap:
            rank, n = heapq.heappop(heap)
            right = after[n]
            if right == end or self._rank.get((ids[n], ids[right])) != rank:
                continue  # one of the two has been merged with another neighbour meanwhile
            ids[n], ids[right] = self._merged[rank], _GONE
            after[n] = after[right]
            if after[n] < end:
                before[after[n]] = n
            for left in (before[n], n):
                if left >= 0 and after[left] < end and (pair := (ids[left], ids[after[left]])) in self._rank:
                    heapq.heappush(heap, (self._rank[pair], left))
        return [number for number in ids if number != _GONE]

    def save(self, path: str | os.PathLike) -> None:
        r"""Write the encoder to one JSON file.

        **Arguments**

        - `path`: the file to write; an old one is replaced.

        **Raises** `FileNotFoundError` if the folder does not exist.
        """
        content = {"vocabulary": self.vocabulary, "merges": self.merges, "special": list(self.special)}
        write_text(path, json.dumps(content))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "BytePairEncoder":
        """Read a file that `save` wrote; `ValueError` says what is wrong with any other."""
        content = read_json(path)
        if content.keys() != {"vocabulary", "merges", "special"}:
            raise ValueError(
                f"{path} has the keys {sorted(content)}; expected vocabulary, merges and special, as save() writes them. "
                "For GPT-2's vocab.json and merges.txt use BytePairEncoder.from_gpt2."
            )
        return _build(cls, path, content["vocabulary"], content["merges"], content["special"])

    @classmethod
    def from_gpt2(
        cls,
        vocab_path: str | os.PathLike,
        merges_path: str | os.PathLike,
        *,
        special: Collection[str] | None = None,
    ) -> "BytePairEncoder":
        r"""Read GPT-2's two files, or any in their format.

        **Arguments**

        - `vocab_path`: JSON, token to id, usually `vocab.json`.
        - `merges_path`: one merge a line, usually `merges.txt`.
        - `special`: the special tokens in the vocabulary; `None` for `<|endoftext|>` if it is there.

        **Raises** `ValueError` if a file is corrupt or the two do not belong together; `FileNotFoundError`.
        """
        vocabulary = read_json(vocab_path)
        if special is None:
            special = {"<|endoftext|>"} & vocabulary.keys()
        check_names("special", special, ordered=False)
        merges = []
        for number, line in enumerate(read_text(merges_path).split("\n"), start=1):
            line = line.rstrip("\r")
            if not line or (number == 1 and line.startswith("#version")):
                continue
            if len(pair := line.split(" ")) != 2:
                raise ValueError(f"{merges_path}, line {number} is {line!r}; expected two tokens with a space between.")
            merges.append(pair)
        return _build(cls, merges_path, vocabulary, merges, sorted(special))


def _build(cls, path, vocabulary, merges, special) -> BytePairEncoder:
    """Check the types that JSON leaves open, and let every complaint begin with the file's name."""
    numbers = vocabulary.values() if isinstance(vocabulary, dict) else [None]
    if not all(type(number) is int for number in numbers):
        raise ValueError(f"{path}: the vocabulary must give each token a whole number.")
    lists = isinstance(merges, list) and isinstance(special, list | tuple)
    if not lists or not all(isinstance(pair, list) and len(pair) == 2 for pair in merges):
        raise ValueError(f"{path}: merges must be a list of pairs, and special a list of names.")
    if not all(isinstance(name, str) for name in (*special, *(token for pair in merges for token in pair))):
        raise ValueError(f"{path}: every token and every name must be a string.")
    try:
        return cls(vocabulary, [tuple(pair) for pair in merges], special)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _check_text(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}; expected a string. For bytes, use encode_bytes.")
    return text


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
