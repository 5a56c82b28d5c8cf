"""Stories of the little world that are possible or not, where words that stand far apart decide."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from plainformer.checks import Natural, Positive, checked
from plainformer.data.stories import possible_sentences, stories, word_kinds

SHORTEST = 13  # ". Anna is in the hall . where is Anna ? hall ."


class LabelledStory(NamedTuple):
    """Whole sentences of a story, and whether it can happen in the little world."""

    text: str
    is_possible: bool


@checked
def labelled_stories(num_stories: Positive, num_words: Positive = 64, seed: Natural = 0) -> list[LabelledStory]:
    """Tell stories of at most `num_words` words, and spoil about half of them by one wrong answer.

    Stories are told in pairs with an answer of the same kind in each, such as the room where somebody is. A coin
    decides whether the two exchange their answers, which makes both impossible. So each word is as frequent in the
    possible stories as in the others.

    Example:
        >>> pf.data.labelled_stories(1, num_words=16, seed=3)
        [LabelledStory(text='. the lamp is in the cellar . where is the lamp ? garden .', is_possible=False)]

    Raises:
        ValueError: if `num_words` is below 13, so that no story answers a question.
    """
    if num_words < SHORTEST:
        raise ValueError(
            f"num_words is {num_words}; expected at least {SHORTEST}, since shorter stories answer nothing."
        )
    random, found = np.random.default_rng(seed), list[LabelledStory]()
    pairs = _pairs(num_words, random)
    while len(found) < num_stories:
        exchange = bool(random.integers(2))
        found += [LabelledStory(told[exchange], not exchange) for told in next(pairs)]
    return found[:num_stories]


def _pairs(num_words: int, random: np.random.Generator) -> Iterator[list[tuple[str, str]]]:
    """Two stories at a time, each as it was told and with the answer of the other."""
    waiting: dict[str, tuple[list[str], int]] = {}
    while True:
        for words in _whole(num_words, int(random.integers(2**31))):
            places = [(place, kind) for place, kind in enumerate(word_kinds(" ".join(words)), start=1) if kind]
            if not places:
                continue
            place, kind = places[random.integers(len(places))]
            other, elsewhere = waiting.pop(kind, (words, place))
            if other[elsewhere] == words[place]:
                waiting[kind] = words, place
                continue
            spoilt = [_with(words, place, other[elsewhere]), _with(other, elsewhere, words[place])]
            if not any(all(possible for _, possible in possible_sentences(text)) for text in spoilt):
                yield list(zip((" ".join(words), " ".join(other)), spoilt, strict=True))


def _whole(num_words: int, seed: int) -> list[list[str]]:
    """Some stories as words, up to the last full stop."""
    told = [text.split(" ") for text in stories(100, num_words, seed)]
    return [words[: len(words) - words[::-1].index(".")] for words in told]


def _with(words: list[str], place: int, word: str) -> str:
    return " ".join([*words[:place], word, *words[place + 1 :]])
