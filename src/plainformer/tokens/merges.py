"""How byte-pair encoding cuts text into pieces, learns its merges and applies them (chapter 01)."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

Pair = tuple[int, int]
Pieces = Mapping[tuple[int, ...], int]  # each distinct piece of a text, as ids, and how often it occurs

_GONE = -1  # stands where a token was that has been merged into its left neighbour


@cache
def byte_alphabet() -> dict[int, str]:
    r"""Return a visible character for each of the 256 bytes, as GPT-2's files have it.

    Bytes that are visible characters in Latin-1 stand for themselves; the others get the code points from 256 on, so
    that a space is written Ġ and a line break Ċ. The order of this dictionary is the order of the ids 0 to 255.
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
    it is a space. Joined together, the pieces are `text` again.
    """
    return _pattern().findall(text)


def count_pairs(pieces: Pieces) -> Counter[Pair]:
    """Count how often each pair of neighbouring tokens occurs in distinct pieces, each given with its own count.

    Implements `eq-tokens-pair-count`. In a row of three equal tokens their pair counts twice.
    """
    counts: Counter[Pair] = Counter()
    for piece, times in pieces.items():
        for pair in pairwise(piece):
            counts[pair] += times
    return counts


def merge_pair(piece: Sequence[int], pair: Pair, new_id: int) -> list[int]:
    """Write `new_id` for each occurrence of `pair`, from left to right; of three equal tokens only two are merged."""
    merged: list[int] = []
    n = 0
    while n < len(piece):
        found = tuple(piece[n : n + 2]) == pair
        merged.append(new_id if found else piece[n])
        n += 2 if found else 1
    return merged


def learn_merges(pieces: Pieces, num_merges: int, *, first_id: int = 256, min_count: int = 1) -> list[Pair]:
    r"""Merge the most frequent pair into a new token, again and again, and return the pairs: n makes `first_id + n`.

    Implements `eq-tokens-best-pair`; Sennrich et al. (2016), section 3.2, algorithm 1. **Ties**: among pairs that are
    equally frequent the one with the smaller left id wins, and then the one with the smaller right id. Ids of bytes
    follow `byte_alphabet`, and each merge takes the next free id. Hugging Face's `tokenizers` has the same rule.

    Merging stops when the best pair occurs less often than `min_count`. The `first_id` is above all ids in the pieces.

    **Differs from the paper** in its bookkeeping alone: only pieces that hold the merged pair are counted again, each
    of them whole. So a text without spaces, which is a single piece, is slow.
    """
    largest = max((number for piece in pieces for number in piece), default=-1)
    if largest >= first_id:
        raise ValueError(f"The pieces hold the id {largest}; expected ids below first_id. Try first_id={largest + 1}.")
    words, times = [list(piece) for piece in pieces], list(pieces.values())
    counts = count_pairs(pieces)
    places = defaultdict(set)  # the words in which each pair occurs, or has occurred
    for place, word in enumerate(words):
        for pair in pairwise(word):
            places[pair].add(place)
    queue = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(queue)
    merges: list[Pair] = []
    while len(merges) < num_merges and (best := _best_pair(queue, counts, max(min_count, 1))):
        new_id = first_id + len(merges)
        merges.append(best)
        born = set()
        for place in places.pop(best):
            old, new = words[place], merge_pair(words[place], best, new_id)
            for gone in pairwise(old):
                counts[gone] -= times[place]
            for come in pairwise(new):
                counts[come] += times[place]
                if new_id in come:
                    places[come].add(place)
                    born.add(come)
            words[place] = new
        for come in born:
            heapq.heappush(queue, (-counts[come], come))
    return merges


def _best_pair(queue: list[tuple[int, Pair]], counts: Mapping[Pair, int], min_count: int) -> Pair | None:
    """Take the most frequent pair from the queue, of equals the smallest; `None` if it occurs too seldom."""
    while queue:
        count, pair = heapq.heappop(queue)
        if -count == counts[pair]:
            return pair if -count >= min_count else None
        heapq.heappush(queue, (-counts[pair], pair))  # other merges have used up some of these pairs
    return None


def apply_merges(piece: Sequence[int], rules: Mapping[Pair, tuple[int, int]]) -> list[int]:
    r"""Apply the earliest learned merge that fits, leftmost first, until none fits.

    Implements `eq-tokens-encode` for one piece, of ids of bytes. `rules` has for each pair to merge its place in the
    order of learning, and the id of the token that it makes. A heap of what could be merged, and a chain of who stands
    next to whom, keep the time near linear even for a piece of a million bytes without a space.
    """
    ids = list(piece)
    end = len(ids)
    after, before = list(range(1, end + 1)), list(range(-1, end - 1))
    queue = [(rules[pair], n) for n, pair in enumerate(pairwise(ids)) if pair in rules]
    heapq.heapify(queue)
    while queue:
        rule, n = heapq.heappop(queue)
        right = after[n]
        if right == end or rules.get((ids[n], ids[right])) != rule:
            continue  # one of the two has been merged with another neighbour meanwhile
        ids[n], ids[right] = rule[1], _GONE
        after[n] = after[right]
        if after[n] < end:
            before[after[n]] = n
        for left in (before[n], n):
            if left >= 0 and after[left] < end and (pair := (ids[left], ids[after[left]])) in rules:
                heapq.heappush(queue, (rules[pair], left))
    return [number for number in ids if number != _GONE]
