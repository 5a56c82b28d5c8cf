"""Dialogues of the little world: a story, then a question that the story answers, and the answer."""

from typing import NamedTuple

import numpy as np

from plainformer.checks import Natural, Positive, checked
from plainformer.data.little_world import sentences
from plainformer.data.stories import stories, world_after

SHORTEST = 13  # ". Anna is in the hall . where is Anna ? hall ."


class Dialogue(NamedTuple):
    """Whole sentences of a story, a question without its mark, its answer, and its kind, as `word_kinds` names it."""

    story: str
    question: str
    answer: str
    kind: str


@checked
def dialogues(num_dialogues: Positive, num_words: Positive = 64, seed: Natural = 0) -> list[Dialogue]:
    """Tell stories of at most `num_words` words, whole sentences each, and ask a question after each.

    Of the kinds of questions that a story can answer, each is as likely as any other; so is each question of a kind.

    Example:
        >>> (dialogue,) = pf.data.dialogues(1, num_words=24, seed=1)
        >>> dialogue.story, dialogue.question, dialogue.answer
        ('. the ball is in the hall . Ben is in the kitchen .', 'who has the ball', 'nobody')

    Raises:
        ValueError: if `num_words` is below 13, so that there may be nothing to ask.
    """
    if num_words < SHORTEST:
        raise ValueError(
            f"num_words is {num_words}; expected at least {SHORTEST}, since shorter stories answer nothing."
        )
    random, found = np.random.default_rng(seed), list[Dialogue]()
    while len(found) < num_dialogues:
        (told,) = stories(1, int(random.integers(SHORTEST, num_words + 1)), seed=int(random.integers(2**31)))
        story = told[: told.rindex(".") + 1]
        asked = [each for _, each in sentences(world_after(story)) if " ? " in each.text]
        if kinds := sorted({each.kind for each in asked}):
            kind = kinds[random.integers(len(kinds))]
            of_kind = [each.text for each in asked if each.kind == kind]
            question, answer = of_kind[random.integers(len(of_kind))].split(" ? ")
            found.append(Dialogue(story, question, answer, kind))
    return found
