"""A little world in forty words, and the probability of everything that may be said of it next.

Three people walk through four rooms and carry things about; one of the things is a box that holds others, and what is
in the box stays in it. Two switches go up and down, and it is light when one of them is up, but not both. The weather
says what people wear. Nothing is hidden: whatever a sentence depends on was told before it.
"""

from collections.abc import Iterator
from typing import NamedTuple

PEOPLE = ("Anna", "Ben", "Clara")
ROOMS = ("garden", "kitchen", "hall", "cellar")
SMALL_THINGS = ("lamp", "ball")
SWITCHES = ("left", "right")
OTHER_WAY = {"up": "down", "down": "up"}
CLOTHES = {"wet": "boots", "cold": "gloves", "hot": "sandals"}
_GRAMMAR = (".", "?", "the", "is", "it", "in", "to", "where", "who", "has", "switch")
_VERBS = ("goes", "takes", "drops", "puts", "wears")
_ANSWERS = ("yes", "no", "nobody")
_NAMES = (*PEOPLE, *ROOMS, *SMALL_THINGS, "box", *SWITCHES, *OTHER_WAY, *CLOTHES, *CLOTHES.values())
WORLD_WORDS = tuple(sorted((*_GRAMMAR, *_VERBS, *_ANSWERS, *_NAMES, "light")))

# What has been told so far: the place of each person and thing, the way of each switch, the weather. And, as "asked",
# the question that was asked last, unless something has happened since.
World = dict[str, str]


class Sentence(NamedTuple):
    """A sentence, without its full stop; how much weight it has beside others; its kind; what it changes."""

    text: str
    weight: float
    kind: str
    changes: World


def path(world: World, name: str) -> list[str]:
    """Where somebody or something is, from its holder to the room: `["box", "Ben", "hall"]`. Empty if not told."""
    place = world.get(name)
    if place is None:
        return []
    return [place] if place in ROOMS else [place, *path(world, place)]


def sentences(world: World) -> list[tuple[float, Sentence]]:
    """Return everything that may be said next, each with its probability.

    News come twice as often as deeds, and twice as often as questions, as far as there are any; within one of the
    three, a sentence has the share of its weight.
    """
    groups = [(2, list(_news(world))), (1, list(_deeds(world))), (1, list(_questions(world)))]
    total = sum(share for share, group in groups if group)
    found = []
    for share, group in groups:
        weight = sum(sentence.weight for sentence in group)
        found += [(share / total * sentence.weight / weight, sentence) for sentence in group]
    return found


def after(world: World, sentence: Sentence) -> World:
    """Return the world after a sentence."""
    return {name: value for name, value in world.items() if name != "asked"} | sentence.changes


def _news(world: World) -> Iterator[Sentence]:
    """What has not been told: each of nine things is as likely to be told next as any other."""
    for name in (*PEOPLE, *SMALL_THINGS, "box"):
        if name not in world:
            in_box = 0.5 if name in SMALL_THINGS and "box" in world else 0.0
            for room in ROOMS:
                yield Sentence(f"{_the(name)} is in the {room}", (1 - in_box) / 4, "news", {name: room})
            if in_box:
                yield Sentence(f"{_the(name)} is in the box", in_box, "news", {name: "box"})
    for switch in SWITCHES:
        if switch not in world:
            for way in OTHER_WAY:
                yield Sentence(f"the {switch} switch is {way}", 1 / 2, "news", {switch: way})
    if "weather" not in world:
        for weather in CLOTHES:
            yield Sentence(f"it is {weather}", 1 / 3, "news", {"weather": weather})


def _the(name: str) -> str:
    return name if name in PEOPLE else f"the {name}"


def _deeds(world: World) -> Iterator[Sentence]:
    """What people can do where they are, and what the switches can."""
    for person in PEOPLE:
        if person in world:
            for room in ROOMS:
                if room != world[person]:
                    yield Sentence(f"{person} goes to the {room}", 1, "goes", {person: room})
            yield from _handling(world, person, world[person])
            if "weather" in world:
                yield Sentence(f"{person} wears {CLOTHES[world['weather']]}", 4, "wears", {})
    if "left" in world and "right" in world:
        for switch in SWITCHES:
            way = OTHER_WAY[world[switch]]
            yield Sentence(f"the {switch} switch goes {way}", 3, "switch", {switch: way})


def _handling(world: World, person: str, here: str) -> Iterator[Sentence]:
    """What somebody can do with things: take what lies here, drop it, put it in the box where that is at hand."""
    for thing in (*SMALL_THINGS, "box"):
        if world.get(thing) == here:
            yield Sentence(f"{person} takes the {thing}", 20, "takes", {thing: person})
        if world.get(thing) == person:
            yield Sentence(f"{person} drops the {thing}", 1, "drops", {thing: here})
            if thing != "box" and world.get("box") in (here, person):
                yield Sentence(f"{person} puts the {thing} in the box", 20, "puts", {thing: "box"})


def _questions(world: World) -> Iterator[Sentence]:
    """What can be asked, with its answer: most often for what is carried in the box; nothing twice in a row."""
    for text, weight, kind in _answered(world):
        if text != world.get("asked"):
            yield Sentence(text, weight, kind, {"asked": text})


def _answered(world: World) -> Iterator[tuple[str, float, str]]:
    """All that may be asked, with its answer, its weight and its kind."""
    for name in (*PEOPLE, *SMALL_THINGS, "box"):
        steps = path(world, name)
        if steps:
            yield f"where is {_the(name)} ? {steps[-1]}", len(steps) ** 3, f"where {len(steps)}"
        if steps and name not in PEOPLE:
            holder = next((place for place in steps if place in PEOPLE), "nobody")
            yield f"who has the {name} ? {holder}", 1, "who"
    if "left" in world and "right" in world:
        yield f"is it light ? {'yes' if world['left'] != world['right'] else 'no'}", 6, "light"
