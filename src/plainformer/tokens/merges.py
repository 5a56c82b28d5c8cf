"""How byte-pair encoding cuts text into pieces and learns its merges (chapter 01)."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise

from plainformer.checks import check_names

Pair = tuple[int, int]


@cache
def byte_alphabet() -> dict[int, str]:
    r"""Give each of the 256 bytes a visible character of its own, as GPT-2's files do.

    Bytes that are visible characters in Latin-1 stand for themselves; the others get the code points from 256 on, so
    that a space is written Ġ and a line break Ċ. The order of this dictionary is the order of the ids 0 to 255.

    **Returns** the character for each byte.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}


@cache
def _pattern():
    import regex  # the standard library's `re` knows no \p{L}

    return regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def pre_tokenise(text: str) -> list[str]:
    r"""Cut text into pieces that no token crosses: words, numbers and signs, each with the space before it.

    Radford et al. (2019), section 2.2; the rule is GPT-2's, in our words: an English ending such as 's; or letters,
    or digits, or other signs, after at most one space; or white space, of which the last one goes to what follows if
    it is a space.

    **Arguments**

    - `text`: any string.

    **Returns** the pieces; joined together they are `text` again.
    """
    return _pattern().findall(text)


def count_pairs(pieces: Mapping[tuple[int, ...], int]) -> Counter[Pair]:
    r"""Count how often each pair of neighbouring tokens occurs.

    Implements `eq-tokens-pair-count`. In a row of three equal tokens their pair counts twice.

    **Arguments**

    - `pieces`: each distinct piece of the text, as ids, and how often it occurs.

    **Returns** the count of each pair.
    """
    counts: Counter[Pair] = Counter()
    for piece, times in pieces.items():
        for pair in pairwise(piece):
            counts[pair] += times
    return counts


def merge_pair(piece: Sequence[int], pair: Pair, new_id: int) -> list[int]:
    r"""Write `new_id` for each occurrence of `pair`, from left to right.

    **Arguments**

    - `piece`: ids.
    - `pair`: the two neighbouring ids to replace.
    - `new_id`: what replaces them.

    **Returns** the new ids; of three equal tokens only the first two are merged.
    """
    merged: list[int] = []
    n = 0
    while n < len(piece):
        found = tuple(piece[n : n + 2]) == pair
        merged.append(new_id if found else piece[n])
        n += 2 if found else 1
    return merged


def learn_merges(
    pieces: Mapping[tuple[int, ...], int], num_merges: int, *, first_id: int = 256, min_count: int = 1
) -> list[Pair]:
    r"""Merge the most frequent pair into a new token, again and again.

    Implements `eq-tokens-best-pair`; Sennrich et al. (2016), section 3.2, algorithm 1. **Ties**: among pairs that are
    equally frequent the one with the smaller left id wins, and then the one with the smaller right id. Ids of bytes
    follow `byte_alphabet`, and each merge takes the next free id. Hugging Face's `tokenizers` has the same rule.

    **Arguments**

    - `pieces`: each distinct piece of the text, as ids, and how often it occurs.
    - `num_merges`: how many merges to learn; fewer come back if nothing is left to merge.
    - `first_id`: the id of the first new token.
    - `min_count`: stop when the best pair occurs less often than this.

    **Returns** the merged pairs, in order; merge n makes the token `first_id + n`.

    **Raises** `ValueError` if an id in the pieces is `first_id` or more, where the new tokens get theirs.

    **Differs from the paper** in its bookkeeping alone: only pieces that hold the merged pair are counted again. Each
    such piece is gone through whole, which is slow for long ones: a text without spaces is a single piece, and every
    merge costs time in proportion to its length.
    """
    largest = max((number for piece in pieces for number in piece), default=-1)
    if largest >= first_id:
        raise ValueError(
            f"The pieces hold the id {largest}; expected ids below first_id = {first_id}, the first new token's. "
            f"Try first_id={largest + 1}."
        )
    words, times = [list(piece) for piece in pieces], list(pieces.values())
    counts = count_pairs(pieces)
    places = defaultdict(set)  # where each pair occurs, or has occurred
    for place, word in enumerate(words):
        for pair in pairwise(word):
            places[pair].add(place)
    heap = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(heap)
    merges: list[Pair] = []
    while heap and len(merges) < num_merges:
        count, pair = heapq.heappop(heap)
        if -count != counts[pair]:  # other merges have used up some of these pairs: back into the queue
            heapq.heappush(heap, (-counts[pair], pair))
            continue
        if -count < max(min_count, 1):
            break
        new_id = first_id + len(merges)
        merges.append(pair)
        born = set()
        for place in places.pop(pair):
            old, new = words[place], merge_pair(words[place], pair, new_id)
            for gone in pairwise(old):
                counts[gone] -= times[place]
            for come in pairwise(new):
                counts[come] += times[place]
                if new_id in come:
                    places[come].add(place)
                    born.add(come)
            words[place] = new
        for come in born:
            heapq.heappush(heap, (-counts[come], come))
    return merges


def check_consistent(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], special: Collection[str]
) -> set[str]:
    """Give the tokens that bytes and merges make, or raise if vocabulary, merges and special tokens do not fit."""
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(f"the ids of {len(vocabulary)} tokens must be 0 to {len(vocabulary) - 1}, each once.")
    made = set(byte_alphabet().values())
    if missing := made - vocabulary.keys():
        raise ValueError(
            f"the vocabulary lacks {len(missing)} of the 256 bytes, such as {min(missing)!r}. A byte-level encoder "
            "needs them all; with Hugging Face's trainer, give initial_alphabet=ByteLevel.alphabet()."
        )
    for rank, (a, b) in enumerate(merges):
        for token in (a, b):
            if token not in made:
                raise ValueError(f"merge {rank}, {a!r} with {b!r}: no byte and no earlier merge makes {token!r}.")
        if a + b not in vocabulary:
            raise ValueError(f"merge {rank}, {a!r} with {b!r}: the vocabulary has no {a + b!r}.")
        made.add(a + b)
    if len(set(merges)) < len(merges):
        twice = Counter(merges).most_common(1)[0][0]
        raise ValueError(f"the merge {twice[0]!r} with {twice[1]!r} stands there twice.")
    check_names("special", special, ordered=False)  # their ids stand in the vocabulary
    for name in special:
        if name in made or name not in vocabulary:
            state = "an ordinary token too" if name in made else "not in the vocabulary"
            raise ValueError(f"the special token {name!r} is {state}.")
    if left := vocabulary.keys() - made - set(special):
        raise ValueError(
            f"no merge makes {len(left)} tokens of the vocabulary, such as {min(left)!r}. Either merges are missing, "
            "or these are special tokens: then name them in `special`."
        )
    return made
