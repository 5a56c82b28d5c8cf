"""Questions that counting cannot answer: short stories of the little world, each told with many names.

A machine may answer most questions of ordinary stories by counting which room was named most often. In these it fails
like that: two people are in two rooms, somebody carries a thing away, somebody else leaves afterwards, a thing is in a
box, somebody keeps walking.
"""

import itertools
from functools import cache

import equinox as eqx
import jax
import numpy as np

from lab.growing import VOCABULARY

PEOPLE, ROOMS = ("Anna", "Ben", "Clara"), ("garden", "kitchen", "hall", "cellar")
MOVES, LONGEST = (1, 2, 4, 8), 60
WRONG = "the same: the other's room, which is wrong"
WRONG_TOO = "the same once more: the other's room"


def told(*sentences: str) -> str:
    """Sentences as a story; the last is a question."""
    return ". " + " . ".join(sentences)


def walk(number: int, rng: np.random.Generator) -> tuple[str, str]:
    """A story in which somebody goes from room to room so many times, and the room at the end."""
    who, walked = rng.choice(PEOPLE), [rng.choice(ROOMS)]
    for _ in range(number):
        walked.append(rng.choice([room for room in ROOMS if room != walked[-1]]))
    goes = [f"{who} goes to the {room}" for room in walked[1:]]
    return told(f"{who} is in the {walked[0]}", *goes, f"where is {who} ?"), walked[-1]


@cache
def questions() -> dict[str, dict[str, str]]:
    """Stories of each kind with their answers; two kinds have the stories of the kind before, and a wrong answer."""
    rng = np.random.default_rng(0)
    names = ("one of two", "carried away", "not taken", "then another leaves", WRONG, "with something else", WRONG_TOO)
    kinds: dict[str, dict[str, str]] = {name: {} for name in (*names, "in the box")}
    two, carried, not_taken, left, wrong, laden, wrong_too, box = kinds.values()
    every = itertools.product(itertools.permutations(PEOPLE, 2), itertools.permutations(ROOMS, 2), ("lamp", "ball"))
    for (one, other), (start, aim), thing in every:
        apart = f"{one} is in the {start}", f"{other} is in the {aim}"
        two |= {told(*apart, f"where is {one} ?"): start, told(*apart, f"where is {other} ?"): aim}
        third = rng.choice([room for room in ROOMS if room not in (start, aim)])
        here = [f"{each} is in the {start}" for each in (one, other, f"the {thing}", "the box")]
        takes, goes, where = f"{one} takes the {thing}", f"{one} goes to the {aim}", f"where is the {thing} ?"
        carried[told("it is wet", here[0], here[2], takes, goes, where)] = aim
        not_taken[told("it is wet", here[0], here[2], goes, where)] = start
        later = told(*here[:3], takes, goes, f"{other} goes to the {third}", where)
        left[later], wrong[later] = aim, third
        thing_too = "ball" if thing == "lamp" else "lamp"
        both = (*here[:3], f"the {thing_too} is in the {start}", takes, f"{other} takes the {thing_too}", goes)
        later = told(*both, f"{other} goes to the {third}", where)
        laden[later], wrong_too[later] = aim, third
        puts = (f"{one} puts the {thing} in the box", f"{other} takes the box", f"{other} goes to the {aim}")
        box[told(*rng.permutation(here), takes, *puts, where)] = aim  # who is there is told in any order
    return kinds | {f"after {n} move{'s' * (n > 1)}": dict(walk(n, rng) for _ in range(100)) for n in MOVES}


@eqx.filter_jit
def likeliest(model, ids, ends):
    """The likeliest word after the last one of each story."""
    return jax.vmap(lambda ids, end: model(ids)[end].argmax())(ids, ends)


def shares(model) -> dict[str, float]:
    """Of each kind, the share of the stories after which the model names the answer."""
    encoded = {story: VOCABULARY.encode(story) for kind in questions().values() for story in kind}
    ids = np.array([each + [0] * (LONGEST - len(each)) for each in encoded.values()])
    ends = np.array([len(each) - 1 for each in encoded.values()])
    said = dict(zip(encoded, np.array(VOCABULARY.tokens)[likeliest(model, ids, ends)], strict=True))
    return {
        name: round(float(np.mean([said[story] == answer for story, answer in kind.items()])), 4)
        for name, kind in questions().items()
    }


def line_of(kind: str, rows: dict[str, list[dict]]) -> str:
    """The line of a kind in card and chapters: for each row the per cent of its seeds."""
    cells = (", ".join(f"{100 * each['asked'][kind]:.0f}" for each in found) for found in rows.values())
    return f"| {kind} | {len(questions()[kind])} | {' | '.join(cells)} |"
