"""Text from ids that come one after the other: nothing is shown of which only a part is there (chapter on tokens)."""

import re
from collections.abc import Iterable, Iterator

from plainformer.data.lists import check_token_ids

# A lone surrogate, which a Python string may hold; and the beginning of a character whose last bytes are not there yet.
_SURROGATE = re.compile(rb"(\xed[\xa0-\xbf][\x80-\xbf])")
_UNFINISHED = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")


def text_of_bytes(data: bytes) -> str:
    """Decode UTF-8; a lone surrogate stays one, and bytes that make no character become U+FFFD."""
    parts = _SURROGATE.split(data)
    return "".join(part.decode("utf-8", "surrogatepass" if n % 2 else "replace") for n, part in enumerate(parts))


def one_by_one(ids: Iterable, vocab_size: int) -> Iterator[int]:
    """Yield ids as they come, each after a look at it."""
    if not isinstance(ids, Iterable) or getattr(ids, "shape", None) == ():
        raise TypeError(f"ids is {ids!r}; expected ids one after the other, as from generate(…, stream=True).")
    return (known for number in ids for known in check_token_ids([number], vocab_size))


def whole_characters(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the text of bytes as they come, and hold back those at the end that are the beginning of a character."""
    held = b""
    for piece in pieces:
        held += piece
        unfinished = _UNFINISHED.search(held[-3:])
        end = len(held) - (len(unfinished[0]) if unfinished else 0)
        yield text_of_bytes(held[:end])
        held = held[end:]
    yield text_of_bytes(held)


def whole_graphemes(texts: Iterable[str]) -> Iterator[str]:
    r"""Yield text as it comes, and hold back the last of what a reader sees as a character (`\X` of `regex`).

    What comes next may belong to it: an accent, the second half of a flag, the child of a family.
    """
    import regex

    held = ""
    for text in texts:
        *whole, held = regex.findall(r"\X", held + text) or [""]
        if whole:
            yield "".join(whole)
    if held:
        yield held
