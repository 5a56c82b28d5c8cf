"""Stories of the little world: telling them, and the probability of each of their words."""

import math
from collections.abc import Iterator

import numpy as np

from plainformer.checks import Natural, Positive, checked
from plainformer.data.little_world import World, after, sentences

# The words of a sentence so far, and the world before it.
Begun = tuple[tuple[str, ...], World]


@checked
def stories(num_stories: Positive, num_words: Positive = 129, seed: Natural = 0) -> list[str]:
    """Tell stories of the little world, `num_words` words each, with a space between two; the last sentence is cut off.

    Full stops and question marks are words, too, and a story begins with a full stop, so that every sentence comes
    after one. There are forty words, `pf.data.little_world.WORLD_WORDS`.

    Example:
        >>> pf.data.stories(1, num_words=12, seed=5)
        ['. the right switch is up . the left switch is up']
    """
    random = np.random.default_rng(seed)
    return [" ".join(_story(random, num_words)) for _ in range(num_stories)]


def _story(random: np.random.Generator, num_words: int) -> list[str]:
    world: World = {}
    words = ["."]
    while len(words) < num_words:
        found = sentences(world)
        ends = np.cumsum([probability for probability, _ in found])
        _, sentence = found[min(int(np.searchsorted(ends, random.random())), len(found) - 1)]
        words += [*sentence.text.split(), "."]
        world = after(world, sentence)
    return words[:num_words]


@checked
def next_words(story: str) -> dict[str, float]:
    """Return every word that may come after this beginning of a story, with its probability.

    Example:
        >>> pf.data.next_words(". it is wet . Anna is in the hall . Anna wears")
        {'boots': 1.0}

    Raises:
        ValueError: if no story begins like this; the message names the first word that is impossible, and what may
            stand there.
    """
    told = list(_begun(story))
    for said, world in told:
        for place, (word, chances) in enumerate(zip(said, _chances(said, world), strict=False)):
            if word not in chances:
                here, wanted = " ".join([*said[:place], word[:20]]), ", ".join(sorted(chances))
                raise ValueError(f"No story goes on with {here!r} there; instead of its last word expected: {wanted}.")
    *_, following = _chances(*told[-1])  # the last sentence is unfinished, or empty
    return following


@checked
def word_surprises(story: str) -> np.ndarray:
    """Return minus the logarithm of the probability of each word after the first, in nats.

    Their mean over many stories is the lowest loss that a model of next words can have. A word that is impossible, and
    what follows it in its sentence, is infinitely surprising; the next sentence is judged as if that one had not been
    said.

    Raises:
        ValueError: if the story does not begin with a full stop, or has no single space between its words.
    """
    return np.array([nats for said, world in _begun(story) for nats in _surprises(said, world)])


@checked
def possible_sentences(story: str) -> list[tuple[str, bool]]:
    """Return each sentence of a story, full stop included, and whether it is possible where it stands.

    Of the last sentence it judges what there is of it. An impossible sentence changes nothing: what follows is judged
    as if it had not been said.

    Raises:
        ValueError: if the story does not begin with a full stop, or has no single space between its words.
    """
    return [
        (" ".join(said), any(words[: len(said)] == said for _, words in _whole(world)))
        for said, world in _begun(story)
        if said
    ]


@checked
def world_after(story: str) -> World:
    """Return what has been told at the end of a story: a dictionary as `pf.data.little_world` has them.

    An impossible sentence changes nothing, and one that is not finished does not yet.

    Raises:
        ValueError: if the story does not begin with a full stop, or has no single space between its words.

    Example:
        >>> pf.data.world_after(". the lamp is in the hall . Anna is in the hall . Anna takes the lamp .")
        {'lamp': 'Anna', 'Anna': 'hall'}
    """
    *_, (_, world) = _begun(story)
    return world


@checked
def word_kinds(story: str) -> list[str]:
    """Return, for each word after the first, the kind of its sentence if the word answers to what was told; else "".

    It is the last word of a question, the thing that somebody takes or drops, what somebody wears, and the way that a
    switch goes: "where 1", "where 2" and "where 3", by the number of steps from what is asked for to its room; "who",
    "light", "takes", "drops", "wears" and "switch". An answer that is wrong has no kind.

    Raises:
        ValueError: if the story does not begin with a full stop, or has no single space between its words.
    """
    return [kind for said, world in _begun(story) for kind in _kinds(said, world)]


def _begun(story: str) -> Iterator[Begun]:
    """The sentences of a story, each with the world before it; the last is unfinished, or empty."""
    first, *words = story.split(" ")
    if first != "." or "" in words:
        raise ValueError(f"The story begins with {story[:20]!r}; expected a full stop, then words, one space between.")
    world: World = {}
    said: list[str] = []
    for word in words:
        said.append(word)
        if word == ".":
            yield tuple(said), world
            text = " ".join(said[:-1])
            world = next((after(world, each) for _, each in sentences(world) if each.text == text), world)
            said = []
    yield tuple(said), world


def _whole(world: World) -> list[tuple[float, tuple[str, ...]]]:
    """The sentences that may come next, word by word, full stop included, each with its probability."""
    return [(probability, (*sentence.text.split(), ".")) for probability, sentence in sentences(world)]


def _chances(said: tuple[str, ...], world: World) -> Iterator[dict[str, float]]:
    """The probability of each word that may come first, then after the first word that was said, and so on."""
    fitting = _whole(world)
    for place in range(len(said) + 1):
        total, chances = sum(probability for probability, _ in fitting), dict[str, float]()
        for probability, words in fitting:
            chances[words[place]] = chances.get(words[place], 0.0) + probability / total
        yield chances
        fitting = [(probability, words) for probability, words in fitting if words[: place + 1] == said[: place + 1]]


def _surprises(said: tuple[str, ...], world: World) -> Iterator[float]:
    for word, chances in zip(said, _chances(said, world), strict=False):
        yield math.log(1 / chances[word]) if word in chances else math.inf


def _kinds(said: tuple[str, ...], world: World) -> list[str]:
    kinds = [""] * len(said)
    for _, sentence in sentences(world):
        words = (*sentence.text.split(), ".")
        if sentence.kind not in ("news", "goes", "puts") and len(said) >= len(words) - 1 and words[: len(said)] == said:
            kinds[len(words) - 2] = sentence.kind
    return kinds
