"""Files of others, to and from the parts of a `BytePairEncoder`: GPT-2's two, and Hugging Face's `tokenizer.json`."""

import json
import os
from collections.abc import Collection, Mapping, Sequence

from plainformer.data.files import read_json, read_text
from plainformer.data.lists import check_once
from plainformer.tokens.merges import GPT2_PATTERN

# What an entry may be, the usual one first: any other makes other ids of a text than a `BytePairEncoder` does.
_OF_FILE = {"normalizer": (None,), "truncation": (None,), "padding": (None,)}
_OF_MODEL = {
    "type": ("BPE", None),  # old files do not say
    "dropout": (None, 0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (False, None),
}
_OF_ADDED = {"special": (True,), "single_word": (False, None), "lstrip": (False, None), "rstrip": (False, None)}


def parts_of_gpt2(
    vocab_path: str | os.PathLike, merges_path: str | os.PathLike, special: Collection[str] | None
) -> dict:
    """Return the arguments of the `BytePairEncoder` that two files of GPT-2's describe."""
    vocabulary, merges = read_json(vocab_path), _read_merges(merges_path)
    if special is None:
        special = {"<|endoftext|>"} & vocabulary.keys()
    return {"vocabulary": vocabulary, "merges": merges, "special": special}


def _read_merges(path: str | os.PathLike) -> list[list[str]]:
    merges = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.rstrip("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        if len(pair := line.split(" ")) != 2:
            raise ValueError(f"{path}, line {number} is {line!r}; expected two tokens with a space between.")
        merges.append(pair)
    return merges


def parts_of_tokenizer(content: Mapping) -> dict:
    """Return the arguments of the `BytePairEncoder` that a `tokenizer.json` describes; `ValueError` if none does."""
    model, added = content.get("model"), content.get("added_tokens") or []
    if not isinstance(model, dict):
        raise ValueError(f"the model is {_short(model)}; expected an object. Is it a tokenizer.json?")
    _check_entries("the file", content, _OF_FILE)
    _check_entries("the model", model, _OF_MODEL)
    vocabulary, merges = model.get("vocab"), model.get("merges")
    if not isinstance(vocabulary, dict) or not isinstance(merges, list):
        raise ValueError("the model lacks an object vocab or a list merges; expected both, as byte-pair encoding has.")
    special = _read_added(added)
    if moved := [name for name, number in special.items() if vocabulary.get(name, number) != number]:
        raise ValueError(f"the added token {moved[0]!r} has another id in the model's vocab; expected the same.")
    return {
        "vocabulary": vocabulary | special,
        "merges": [pair.split(" ") if isinstance(pair, str) else pair for pair in merges],
        "special": list(special),
        "pattern": _read_pattern(content.get("pre_tokenizer")),
        "whole_pieces": bool(model.get("ignore_merges")),
    }


def tokenizer_of_parts(
    vocabulary: Mapping[str, int],
    merges: Sequence[Sequence[str]],
    special: Collection[str],
    pattern: str,
    whole_pieces: bool,
) -> dict:
    """Return the `tokenizer.json` of an encoder with these parts, which `parts_of_tokenizer` reads back."""
    for text in (*special, pattern):
        if text.encode("utf-8", "ignore").decode() != text:
            raise ValueError(
                f"{text!r} holds a lone surrogate; expected a name and a pattern that a UTF-8 file can hold."
            )
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    cut_before = {"type": "Sequence", "pretokenizers": [split, byte_level | {"use_regex": False}]}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocabulary[name], "content": name} | plain for name in special],
        "normalizer": None,
        "pre_tokenizer": byte_level if pattern == GPT2_PATTERN else cut_before,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": whole_pieces,
            "vocab": dict(vocabulary),
            "merges": [f"{a} {b}" for a, b in merges],  # older versions read only this form, newer ones both
        },
    }


def _check_entries(where: str, entries: Mapping, allowed: Mapping[str, tuple]) -> None:
    """Raise `ValueError` for an entry that a `BytePairEncoder` has nothing for."""
    for key, values in allowed.items():
        if (entry := entries.get(key)) not in values:
            raise ValueError(
                f"{where} has {key} {_short(entry)}; expected {_short(values[0])}: BytePairEncoder has no other."
            )


def _read_added(added) -> dict[str, int]:
    """The special tokens, name to id."""
    if not isinstance(added, list):
        raise ValueError(f"added_tokens is {_short(added)}; expected a list.")
    for token in added:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str) or "id" not in token:
            raise ValueError(f"added_tokens holds {_short(token)}; expected objects with content and id.")
        _check_entries(f"the added token {token['content']!r}", token, _OF_ADDED)
    if len({token.get("normalized") for token in added}) > 1:
        raise ValueError(
            "some added tokens are normalized and some are not, which decides who wins; expected one kind."
        )
    check_once("added_tokens", (token["content"] for token in added))
    return {token["content"]: token["id"] for token in added}


def _read_pattern(pre_tokenizer: object) -> str:
    """How the file cuts text into pieces, before it writes bytes as characters."""
    match pre_tokenizer:
        case {"type": "ByteLevel", "add_prefix_space": False, **others} if others.get("use_regex", True):
            return GPT2_PATTERN
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        }:
            return pattern
    expected = "ByteLevel, or Split by a Regex (Isolated) and ByteLevel without use_regex; add_prefix_space false"
    raise ValueError(f"the pre_tokenizer is {_short(pre_tokenizer)}; expected {expected}.")


def _short(entry: object) -> str:
    """An entry as the file has it, but no more than a line of it."""
    text = json.dumps(entry, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
