"""Dates by a linear classifier for each letter of the answer, on groups of letters of the source."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from plainformer.data.dates import DatePair

REACH = 4  # letters on either side of a letter whose classes are features with it


def groups(text: str, longest: int) -> Iterator[str]:
    """Groups of up to so many letters, with a mark at both ends; single ones, with their places from both ends."""
    padded = f"^{text}$"
    for n in range(1, longest + 1):
        yield from (f"group {padded[place : place + n]}" for place in range(len(padded) - n + 1))
    yield from (f"left {place} {letter}" for place, letter in enumerate(text))
    yield from (f"right {place} {letter}" for place, letter in enumerate(reversed(text)))


def among_classes(text: str) -> Iterator[str]:
    """Each letter, with the classes of those around it: digit, letter or other."""
    padded = " " * REACH + text + " " * REACH
    classes = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", padded.lower()))
    for place in range(REACH, REACH + len(text)):
        for before in range(REACH):
            for after in range(REACH):
                around = classes[place - before : place] + padded[place] + classes[place + 1 : place + after + 1]
                yield f"{before} {around}"


class LinearClassifiers:
    """A linear support-vector machine for each letter of the answer.

    Args:
        pairs: what they learn from; all answers are equally long.
        longest: letters of a group, at most.
        has_classes: whether there are features of letters among classes.
        cost: by how much errors outweigh the size of the weights, scikit-learn's `C`.
    """

    def __init__(self, pairs: Sequence[DatePair], longest: int, has_classes: bool, cost: float):
        self.vectors = CountVectorizer(
            analyzer=lambda text: [*groups(text.lower(), longest), *(among_classes(text) if has_classes else ())],
            binary=True,
            min_df=2,
        )
        features = self.vectors.fit_transform(pair.source for pair in pairs)
        letters = np.array([list(pair.target) for pair in pairs]).T
        self.machines = [
            LinearSVC(C=cost, max_iter=10_000).fit(features, column) if len({*column}) > 1 else column[0]
            for column in letters
        ]

    def translate(self, sources: Sequence[str]) -> list[str]:
        """The answers, letter by letter."""
        features = self.vectors.transform(sources)
        columns = [
            each.predict(features) if isinstance(each, LinearSVC) else [each] * len(sources) for each in self.machines
        ]
        return ["".join(row) for row in zip(*columns, strict=True)]
