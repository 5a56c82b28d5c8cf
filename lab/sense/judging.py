"""Judges of what a model told, and how sure their counts are: strict, believing, and believing about others only."""

from collections.abc import Callable, Sequence

import numpy as np

import plainformer as pf
from plainformer.data.little_world import CLOTHES, PEOPLE, ROOMS, SMALL_THINGS, SWITCHES, World, after, path, sentences

# Each sentence that has ended, whether it is possible, and whether it counts.
Judged = list[tuple[str, bool, bool]]
THINGS = (*SMALL_THINGS, "box")


def strict(story: str) -> Judged:
    """As if an impossible sentence had not been said."""
    return [(text, possible, True) for text, possible in pf.data.possible_sentences(story) if text.endswith(".")]


def believing(story: str) -> Judged:
    """As if the world were as each impossible sentence says: what agrees with it is possible from then on."""
    return [(text, possible, True) for text, possible, _ in others(story)]


def others(story: str) -> Judged:
    """The same; a sentence does not count where an impossible one before it named the same person, thing or switch."""
    world: World = {}
    slipped: set[str] = set()
    found = []
    for whole, _, _ in strict(story):
        text = whole[:-2]
        meant = next((each for _, each in sentences(world) if each.text == text), None)
        found.append((whole, meant is not None, not slipped & about(text)))
        if meant is not None:
            world = after(world, meant)
        else:
            world = {name: value for name, value in world.items() if name != "asked"} | said(text, world)
            slipped |= about(text)
    return found


def said(text: str, world: World) -> World:
    """What an impossible sentence says of the world; nothing where it cannot be understood, or what it needs is untold.

    A wrong answer about the light says nothing, because either switch may be meant.
    """
    match [word for word in text.split() if word != "the"]:
        case [name, "is", "in", place] | ["where", "is", name, "?", place] if name in (*PEOPLE, *THINGS):
            return {name: place} if place in ROOMS or (place in world and name in SMALL_THINGS) else {}
        case [name, "goes", "to", place] if name in PEOPLE and place in ROOMS:
            return {name: place}
        case [holder, "takes", thing] | ["who", "has", thing, "?", holder] if thing in THINGS and holder in PEOPLE:
            return {thing: holder} if holder in world else {}
        case ["who", "has", thing, "?", "nobody"] if thing in THINGS and path(world, thing):
            return {thing: path(world, thing)[-1]}
        case [name, "drops", thing] if thing in THINGS and name in PEOPLE:
            return {thing: world[name]} if name in world else {}
        case [_, "puts", thing, "in", "box"] if thing in SMALL_THINGS:
            return {thing: "box"} if "box" in world else {}
        case [switch, "switch", "is" | "goes", ("up" | "down") as way] if switch in SWITCHES:
            return {switch: way}
        case ["it", "is", weather] if weather in CLOTHES:
            return {"weather": weather}
        case [_, "wears", clothes] if clothes in CLOTHES.values():
            return {"weather": next(each for each in CLOTHES if CLOTHES[each] == clothes)}
    return {}


def about(text: str) -> set[str]:
    """Whom and what a sentence names: people, things, switches (both if it asks for the light), the weather."""
    words = set(text.split())
    named = words & {*PEOPLE, *THINGS, *SWITCHES}
    weather = {"weather"} if words & {*CLOTHES, *CLOTHES.values()} else set()
    return named | weather | (set(SWITCHES) if "light" in words else set())


def marks(start: str, story: str, judge: Callable[[str], Judged] = strict) -> dict[str, list[bool]]:
    """Of the sentences that were written after a beginning: which are right, by what is asked of them.

    `possible` holds all, `early` and `late` the first and the second half of them, `answers` the questions. `again`
    says which stood in the story before.
    """
    before, whole = len(strict(start)), judge(story)
    texts = [text for text, _, _ in whole]
    new = whole[before:]
    half = -(-len(new) // 2)
    parts = {"possible": new, "early": new[:half], "late": new[half:], "answers": [one for one in new if "?" in one[0]]}
    found = {name: [possible for _, possible, counts in part if counts] for name, part in parts.items()}
    return found | {"again": [texts[n] in texts[:n] for n in range(before, len(texts))]}


def ratio(stories: Sequence[list[bool]]) -> tuple[float, np.ndarray]:
    """The share of right marks among all, and what each story adds to its error.

    Stories are drawn, not sentences, which may be wrong together: the standard error is the root of the sum of squares
    of these numbers, as for any quotient of two sums; Cochran (1977), chapter 6.
    """
    right, number = (np.array([count(each) for each in stories]) for count in (sum, len))
    share = right.sum() / number.sum()
    return float(share), (right - share * number) / number.sum()


def error(parts: np.ndarray) -> float:
    """The standard error of what `ratio` found, or of a sum of such."""
    return float(np.sqrt((parts**2).sum()))


def split(early: Sequence, late: Sequence, after: Sequence) -> dict[str, list[float]]:
    """What of the loss from early to late sentences is there after right words, too, and what is not; with errors.

    Each argument has a list of marks for each story, the same stories in the same order. `length` is early minus after,
    `own` is after minus late, and `part` is the part of `own` in both.
    """
    (first, of_first), (second, of_second), (third, of_third) = map(ratio, (early, late, after))
    part = (third - second) / (first - second)
    of_part = ((of_third - of_second) - part * (of_first - of_second)) / (first - second)
    found = {
        "early": (first, of_first),
        "late": (second, of_second),
        "after": (third, of_third),
        "length": (first - third, of_first - of_third),
        "own": (third - second, of_third - of_second),
        "part": (part, of_part),
    }
    return {name: [round(value, 4), round(error(parts), 4)] for name, (value, parts) in found.items()}
