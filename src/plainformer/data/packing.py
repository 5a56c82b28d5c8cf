"""Documents of unequal length in windows of one length (chapter on recipes)."""

from collections.abc import Sequence
from typing import Annotated

import jax.numpy as jnp
import numpy as np

from plainformer.checks import Number, checked
from plainformer.data.lists import check_list, check_token_ids
from plainformer.data.named_batches import PackedWindows

WindowLen = Annotated[int, Number(lambda n: 2 <= n < 2**30, "at least 2, so that a token sees another", whole=True)]


@checked
def pack(documents, window_len: WindowLen, *, cut: bool = False) -> PackedWindows:
    """Put documents, lists of token ids, into windows of `window_len` tokens, several into one where they fit.

    Of each document all tokens but the last are inputs, and all but the first are targets. Begin it with a token that
    says so, or end it with one, if its first word or its end is to be learned. `Decoder` reads the result so that a
    token sees its own document alone.

    Args:
        documents: at least one; each has at least two tokens.
        window_len: how many inputs a window has.
        cut: `False` keeps every document whole, and leaves room at the end of windows: the longest document comes
            first, and each goes where the least room is left for it, after Ding et al. (2024). `True` fills each window
            in the order of the documents, and cuts what does not fit.

    Raises:
        ValueError: if there is no document, one has fewer than two tokens, or, where none may be cut, one has more than
            `window_len` inputs.

    Example:
        Inputs of 3, 4 and 5 tokens: the last and the first fill a window.

        >>> packed = pf.data.pack([range(4), range(5), range(6)], window_len=8)
        >>> print(packed.documents)
        [[ 0  0  0  0  0  1  1  1]
         [ 0  0  0  0 -1 -1 -1 -1]]
    """
    check_list("documents", documents, "documents, each a list of token ids")
    read = [_ids_of(place, ids) for place, ids in enumerate(documents)]
    if not read:
        raise ValueError("documents is empty; expected at least one list of token ids.")
    lengths = [len(ids) - 1 for ids in read]
    if not cut and max(lengths) > window_len:
        place = int(np.argmax(lengths))
        raise ValueError(
            f"documents[{place}] has {lengths[place] + 1} tokens; expected at most window_len + 1, {window_len + 1}, "
            "the last a target only. Cut it, or pass cut=True."
        )
    pieces = _cut(lengths, window_len) if cut else _best_fit(lengths, window_len)
    packed = np.zeros((3, len(pieces), window_len), np.int32)
    packed[2] = -1
    for window, parts in zip(np.moveaxis(packed, 1, 0), pieces, strict=True):
        end = 0
        for number, (place, begin, size) in enumerate(parts):
            ids = read[place][begin : begin + size + 1]
            window[:, end : end + size] = ids[:-1], ids[1:], [number] * size
            end += size
    return PackedWindows(*(jnp.asarray(each) for each in packed))


Parts = list[tuple[int, int, int]]  # of which document, from which token on, how many


def _best_fit(lengths: Sequence[int], window_len: int) -> list[Parts]:
    """Which documents each window holds: the longest first, each where the least room is left for it."""
    windows: list[Parts] = []
    with_room: list[list[Parts]] = [[] for _ in range(window_len + 1)]
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        length = lengths[place]
        room = next((room for room in range(length, window_len + 1) if with_room[room]), None)
        if room is None:
            room = window_len
            windows.append([])
            window = windows[-1]
        else:
            window = with_room[room].pop()
        window.append((place, 0, length))
        with_room[room - length].append(window)
    return windows


def _cut(lengths: Sequence[int], window_len: int) -> list[Parts]:
    """Which parts of documents each window holds, if it is filled to its end before the next begins."""
    windows: list[Parts] = []
    room = 0
    for place, length in enumerate(lengths):
        begin = 0
        while begin < length:
            if room == 0:
                windows.append([])
                room = window_len
            size = min(room, length - begin)
            windows[-1].append((place, begin, size))
            begin, room = begin + size, room - size
    return windows


def _ids_of(place: int, document) -> list[int]:
    ids = check_token_ids(document, name=f"documents[{place}]")
    if len(ids) < 2:
        what = "is empty" if not ids else "has one token"
        raise ValueError(f"documents[{place}] {what}; expected at least two, the second a target of the first.")
    return ids
