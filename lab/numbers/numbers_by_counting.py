"""What the encoder–decoder of numbers has to beat: a translator that only counts (chapter on encoder–decoders).

Like the translators that came before neural ones, it has a table of pieces and their words, and a language model that
says in which order they are to stand. It is told how long pieces may be, and that a piece may be read one place late;
which pieces there are, what they mean and how English goes on, it counts in the pairs.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import plainformer as pf
from plainformer.data.numbers import NumberPair

LENGTHS = range(3, 15)  # of a piece, in letters
TOKEN = re.compile(r"[a-z]+|, | and |-| ")  # English words and what joins them
JOINTS = (", ", " and ", "-", " ")
ENOUGH = 3  # pairs in which a piece must stand with its word
ORDER = 3  # of the model of English, the best of 3 to 5 on the validation pairs
WIDTH = 30  # how many beginnings are kept


def pieces_of(text: str) -> set[str]:
    """All pieces of a text; a space in it is no letter."""
    return {text[i : i + n] for n in LENGTHS for i in range(len(text) - n + 1) if " " not in text[i : i + n]}


def piece_table(pairs: Sequence[NumberPair]) -> dict[str, str]:
    """English words by pieces of source: competitive linking, as in Melamed (2000). The piece and word that come
    together most faithfully belong together; both are struck out where they do, and so on with the rest."""
    sources, words = [pair.source for pair in pairs], [set(re.findall("[a-z]+", p.target)) - {"and"} for p in pairs]
    table: dict[str, str] = {}
    while True:
        pieces = [pieces_of(source) for source in sources]
        with_piece = Counter(piece for each in pieces for piece in each)
        with_word = Counter(word for each in words for word in each)
        both = Counter(
            (piece, word) for some, each in zip(pieces, words, strict=True) for piece in some for word in each
        )
        likeness = {
            (2 * count / (with_piece[piece] + with_word[word]), len(piece), piece, word)
            for (piece, word), count in both.items()
            if count >= ENOUGH
        }
        if not likeness:
            return table
        _, _, best, word = max(likeness)
        table[best] = word
        words = [each - {word} if best in source else each for source, each in zip(sources, words, strict=True)]
        sources = [source.replace(best, " ") for source in sources]


def next_places(read: frozenset[int]) -> list[int]:
    """Which word may be read next: the first that is not yet read, or, if none was read before its turn, the second."""
    first = min(set(range(len(read) + 1)) - read)
    return [first] if max(read, default=-1) > first else [first, first + 1]


class CountingTranslator:
    """A table of pieces and a 3-gram model of English numbers."""

    def __init__(self, pairs: Sequence[NumberPair]):
        self.table = piece_table(pairs)
        texts = [["<start>"] * (ORDER - 1) + TOKEN.findall(pair.target) + ["<end>"] for pair in pairs]
        self.ids = {token: number for number, token in enumerate(sorted({token for text in texts for token in text}))}
        tokens = [self.ids[token] for text in texts for token in text]
        self.english = pf.training.NgramModel(tokens, ORDER, len(self.ids), discount=None)

    def words(self, source: str) -> list[str]:
        """The words of the longest pieces from left to right; letters that begin none are passed over."""
        words, place = [], 0
        while place < len(source):
            known = [n for n in LENGTHS if source[place : place + n] in self.table]
            words += [self.table[source[place : place + n]] for n in known[-1:]]
            place += known[-1] if known else 1
        return words

    def score(self, tokens: Sequence[str], before: tuple[str, ...]) -> float:
        """The log-probability of tokens after others."""
        text = [self.ids[token] for token in (*before[1 - ORDER :], *tokens)]
        places = range(len(text) - len(tokens), len(text))
        return sum(math.log(self.english.probability(text[n], tuple(text[max(n - ORDER + 1, 0) : n]))) for n in places)

    def translate(self, source: str) -> str:
        """The most probable order of the words, with what joins them, by a beam."""
        words = self.words(source)
        start = ("<start>",) * (ORDER - 1)
        beam: list[tuple] = [(0.0, frozenset(), start)]
        for number in range(len(words)):
            longer = [
                (score + self.score(joined, text), read | {place}, text + joined)
                for score, read, text in beam
                for place in next_places(read)
                if place < len(words)
                for joined in ([(joint, words[place]) for joint in JOINTS] if number else [(words[place],)])
            ]
            beam = sorted(longer, key=lambda each: -each[0])[:WIDTH]
        _, best = max((score + self.score(["<end>"], text), text) for score, _, text in beam)
        return "".join(best[ORDER - 1 :])
