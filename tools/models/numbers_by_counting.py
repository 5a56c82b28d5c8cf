"""What the encoder–decoder of numbers has to beat: a translator that only counts (chapter 09).

Like the translators that came before neural ones, it has a table of pieces and their words, and a language model that
says in which order they are to stand. It is told how long pieces may be, and that a piece may be read up to two places
late; which pieces there are, what they mean and how English goes on, it counts in the pairs.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

import plainformer as pf
from plainformer.data.numbers import NumberPair

LENGTHS = range(3, 15)  # of a piece, in letters
TOKEN = re.compile(r"[a-z]+|, | and |-| ")  # English words and what joins them
JOINTS = (", ", " and ", "-", " ")
LATE, WIDTH = 2, 30  # how late a piece may be read; how many beginnings are kept


def piece_table(pairs: Sequence[NumberPair]) -> dict[str, str]:
    """For each English word, the piece of source that comes with it most faithfully: by twice the pairs that have both,
    divided by those that have the one and those that have the other; of equals, the longest."""
    both: Counter[tuple[str, str]] = Counter()
    with_piece: Counter[str] = Counter()
    with_word: Counter[str] = Counter()
    for pair in pairs:
        text = pair.source
        pieces = {text[i : i + n] for n in LENGTHS for i in range(len(text) - n + 1)}
        words = set(re.findall("[a-z]+", pair.target)) - {"and"}
        with_piece.update(pieces)
        with_word.update(words)
        both.update(itertools.product(words, pieces))
    best: dict[str, tuple] = {}
    for (word, piece), count in both.items():
        found = 2 * count / (with_word[word] + with_piece[piece]), len(piece), piece
        best[word] = max(best.get(word, found), found)
    return {piece: word for word, (_, _, piece) in best.items()}


class CountingTranslator:
    """A table of pieces and a 4-gram model of English numbers."""

    def __init__(self, pairs: Sequence[NumberPair]):
        self.table = piece_table(pairs)
        texts = [["<start>"] * 3 + TOKEN.findall(pair.target) + ["<end>"] for pair in pairs]
        self.ids = {token: number for number, token in enumerate(sorted({token for text in texts for token in text}))}
        tokens = [self.ids[token] for text in texts for token in text]
        self.english = pf.training.NgramModel(tokens, 4, len(self.ids), discount=None)

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
        text = [self.ids[token] for token in (*before[-3:], *tokens)]
        places = range(len(text) - len(tokens), len(text))
        return sum(math.log(self.english.probability(text[n], tuple(text[max(n - 3, 0) : n]))) for n in places)

    def translate(self, source: str) -> str:
        """The most probable order of the words, with what joins them, by a beam."""
        words = self.words(source)
        start = ("<start>",) * 3
        beam: list[tuple] = [(0.0, frozenset(), start)]
        for number in range(len(words)):
            longer = [
                (score + self.score(joined, text), read | {place}, text + joined)
                for score, read, text in beam
                for place in [n for n in range(len(words)) if n not in read][:LATE]
                for joined in ([(joint, words[place]) for joint in JOINTS] if number else [(words[place],)])
            ]
            beam = sorted(longer, key=lambda each: -each[0])[:WIDTH]
        _, best = max((score + self.score(["<end>"], text), text) for score, _, text in beam)
        return "".join(best[3:])
