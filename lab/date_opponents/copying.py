"""Dates by counting: numbers that are copied into the answer, and what is left over by the letters of the words.

It is told to cut texts into runs of digits and runs of letters, and that a run of digits may be copied, with something
put in front. Which numbers are copied where, and what the words mean, it counts in the pairs.
"""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from plainformer.data.dates import DatePair

Copy = tuple[int, str]  # to which field of the answer, and what is put in front
KINDS: dict[str, Callable[[int, list[str]], int]] = {
    "by its length": lambda place, numbers: len(numbers[place]),
    "by its place from the left": lambda place, numbers: place,
    "by its place from the right": lambda place, numbers: place - len(numbers),
}
OFTEN = 0.99  # the share of the numbers of a kind that have to be found in their field


def numbers_of(text: str) -> list[str]:
    """The runs of digits."""
    return re.findall(r"\d+", text)


def words_of(text: str) -> str:
    """The runs of letters."""
    return " ".join(re.findall(r"[^\W\d_]+", text.lower()))


def copies_of(pairs: Sequence[DatePair], kind: Callable[[int, list[str]], int]) -> dict[int, Copy]:
    """For each kind of number where it goes, if nearly all of them are found there."""
    total, found = Counter[int](), defaultdict[int, Counter[Copy]](Counter)
    for pair in pairs:
        numbers, fields = numbers_of(pair.source), numbers_of(pair.target)
        for place, number in enumerate(numbers):
            total[kind(place, numbers)] += 1
            found[kind(place, numbers)].update(
                (n, field.removesuffix(number)) for n, field in enumerate(fields) if field.endswith(number)
            )
    best = {each: counts.most_common(1)[0] for each, counts in found.items() if counts}
    return {each: copy for each, (copy, count) in best.items() if count >= OFTEN * total[each]}


class ByRegression:
    """Logistic regression on groups of letters.

    Args:
        longest: letters of a group, at most; groups do not cross the ends of words.
        cost: by how much errors outweigh the size of the weights, scikit-learn's `C`.
    """

    def __init__(self, longest: int, cost: float):
        groups = CountVectorizer(analyzer="char_wb", ngram_range=(1, longest), binary=True)
        self.machine = make_pipeline(groups, LogisticRegression(C=cost, max_iter=1000))

    def fit(self, texts: list[str], fields: list[str]):
        """Learn which fields go with which words."""
        return self.machine.fit(texts, fields)


class ByLikeness:
    """A dictionary of the words that nearly always come with one field; others count as the most similar of these.

    Args:
        often: the share of its texts in which a word of the dictionary comes with its field.
    """

    def __init__(self, often: float):
        self.often = often
        self.like = cache(self._like)

    def fit(self, texts: list[str], fields: list[str]):
        """Count which fields words come with."""
        counts = defaultdict[str, Counter[str]](Counter)
        for text, field in zip(texts, fields, strict=True):
            for word in text.split():
                counts[word][field] += 1
        best = {word: each.most_common(1)[0] for word, each in counts.items()}
        self.known = {word: field for word, (field, n) in best.items() if n > self.often * counts[word].total()}
        return self

    def _like(self, word: str) -> tuple[float, str]:
        """How much a word is like the entry that is most like it, and this entry."""
        return max((difflib.SequenceMatcher(None, word, entry).ratio(), entry) for entry in self.known)

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The field of the first word that is known, or else of the entry that is most like one of the words."""
        found = []
        for words in map(str.split, texts):
            first = next((word for word in words if word in self.known), None)
            found.append(self.known[first or max(map(self.like, words))[1]])
        return found


class CopyingTranslator:
    """Copies of numbers, and for each field that gets none a reader of the words.

    Args:
        pairs: what it learns from.
        kind: how numbers are told apart, a key of `KINDS`.
        reader: makes a reader of words, with `fit` and `predict`.
    """

    def __init__(self, pairs: Sequence[DatePair], kind: str, reader: Callable[[], Any]):
        self.kind = KINDS[kind]
        self.copies = copies_of(pairs, self.kind)
        ((self.form, _),) = Counter(re.sub(r"\d+", "{}", pair.target) for pair in pairs).most_common(1)
        texts, fields = [words_of(pair.source) for pair in pairs], [numbers_of(pair.target) for pair in pairs]
        left = {*range(len(fields[0]))} - {field for field, _ in self.copies.values()}
        self.readers = {n: reader().fit(texts, [each[n] for each in fields]) for n in left}

    def translate(self, sources: Sequence[str]) -> list[str]:
        """The answers; a field that nothing fills stays empty."""
        texts = list(map(words_of, sources))
        read = {n: each.predict(texts) for n, each in self.readers.items()}
        answers = []
        for row, source in enumerate(sources):
            numbers, fields = numbers_of(source), [""] * self.form.count("{}")
            for place in range(len(numbers)):
                field, front = self.copies.get(self.kind(place, numbers), (None, ""))
                if field is not None:
                    fields[field] = front + numbers[place]
            for n, column in read.items():
                fields[n] = column[row]
            answers.append(self.form.format(*fields))
        return answers
