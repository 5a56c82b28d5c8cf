"""How byte-pair encoding cuts text into pieces, learns its merges and applies them (chapter on tokens)."""

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

Pair = tuple[int, int]
Pieces = Mapping[tuple[int, ...], int]  # each distinct piece of a text, as ids, and how often it occurs

GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# What a pattern may be made of: signs that `regex` and Hugging Face's `tokenizers` read alike, and none looks behind.
_SYNTAX = r"characters, sets such as [^\s\p{L}], groups such as (?:…) and (?i:…), |, repetitions, and (?=…) or (?!…)."
_ESCAPED = r"\\(?:[rntsSdD]|[^\w\s]|[pP]\{[LMNPSZC][a-z]?\})"
_SET = rf"\[\^?(?:{_ESCAPED}|(?!&&|--|\|\||~~)[^\\\[\]])+\]"
_REPEATED = r"[?*+][?+]?|\{\d+(?:,\d*)?\}(?![?*+])"
_GROUP = r"\((?:\?(?:i?:|[=!])|(?![?*+]))|[)|]"
_UNDERSTOOD = re.compile(rf"(?:{_ESCAPED}|{_SET}|{_REPEATED}|{_GROUP}|[^\\\[\](){{}}?*+|^$])*")

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
def _compiled(pattern: str):
    """A pattern that also matches what lies between matches, and one that only asks whether a match reached the end."""
    import regex  # the standard library's `re` knows no \p{L}

    if odd := _UNDERSTOOD.sub("", pattern, count=1):
        raise ValueError(f"pattern has {odd[:8]!r} at {len(pattern) - len(odd)}; expected {_SYNTAX}")
    try:
        if regex.fullmatch(pattern, ""):
            raise ValueError(f"pattern {pattern!r} matches the empty text; expected one character at least: + for *.")
        either = rf"(?:{pattern})|(?:(?!{pattern})[\s\S])+"
        return regex.compile(either, regex.FULLCASE), regex.compile(rf"(?>{either})(?!)", regex.FULLCASE)
    except regex.error as error:
        raise ValueError(f"pattern {pattern!r} is not a regular expression: {error}.") from error


def check_pattern(pattern: str) -> None:
    """Raise `ValueError` unless `pre_tokenise` takes this pattern; `TypeError` if it is no string."""
    if not isinstance(pattern, str):
        raise TypeError(f"pattern is {pattern!r}; expected a regular expression, as a string.")
    _compiled(pattern)


def pre_tokenise(text: str, pattern: str = GPT2_PATTERN) -> list[str]:
    r"""Cut text into pieces that no token crosses: words, numbers and signs, each with the space before it.

    Radford et al. (2019), section 2.2; the rule is GPT-2's, in our words: an English ending such as 's; or letters,
    or digits, or other signs, after at most one space; or white space, of which the last one goes to what follows if
    it is a space. Joined together, the pieces are `text` again.

    Another `pattern` is a regular expression of which each match is a piece, and so is what lies between two: digits in
    threes are `r"\p{N}{1,3}|\p{L}+|[^\p{L}\p{N}]+"`. It may be made of characters, sets, classes such as `\p{L}` and
    `\s`, groups, `|`, `(?i:…)`, repetitions and looks ahead: what other libraries read in the same way, and what never
    asks for the text before a piece.

    Raises:
        ValueError: for any other pattern.
    """
    either, _ = _compiled(pattern)
    pieces = [match[0] for match in either.finditer(text)]
    if sum(map(len, pieces)) < len(text):
        raise ValueError(f"pattern {pattern!r} matches an empty piece before a character; expected one or more.")
    return pieces


def certain_pieces(text: str, pattern: str = GPT2_PATTERN) -> list[str]:
    """Return the pieces at the start of `text` that stay as they are whatever text follows.

    They end before the first piece for which the regular expression had to look beyond the end of the text.
    """
    _, reaches_end = _compiled(pattern)
    certain, end = [], 0
    for piece in pre_tokenise(text, pattern):
        if reaches_end.match(text, end, partial=True):
            break
        certain.append(piece)
        end += len(piece)
    return certain


def count_pairs(pieces: Pieces) -> Counter[Pair]:
    """Count how often each pair of neighbouring tokens occurs in distinct pieces, each given with its own count.

    Implements `eq-subwords-pair-count`. In a row of three equal tokens their pair counts twice.
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

    Implements `eq-subwords-best-pair`; Sennrich et al. (2016), section 3.2, algorithm 1. Ties: among pairs that are
    equally frequent the one with the smaller left id wins, and then the one with the smaller right id. Ids of bytes
    follow `byte_alphabet`, and each merge takes the next free id. Hugging Face's `tokenizers` has the same rule.

    Merging stops when the best pair occurs less often than `min_count`. The `first_id` is above all ids in the pieces.

    Differs from the paper:
        In its bookkeeping alone: only pieces that hold the merged pair are counted again, each of them whole. So a text
        without spaces, which is a single piece, is slow.
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

    Implements `eq-subwords-encode` for one piece, of ids of bytes. `rules` has for each pair to merge its place in the
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
