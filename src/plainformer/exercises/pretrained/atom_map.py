"""Exercise `atom_map`: to which atom that was put in each atom that comes out attends most."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _atoms_behind(elements, arrow):
    return [m for m in range(arrow + 1, len(elements)) if elements[m] > 0]


def atom_map(
    weights,
    elements,
    arrow,
    *,
    attention=lambda weights: weights,
    candidates=lambda elements, arrow, m: (np.arange(len(elements)) < arrow) & (elements == elements[m]),
    choose=np.argmax,
    name=lambda place, elements, arrow: place,
    asked=_atoms_behind,
):
    """Return for each atom behind the arrow, from left to right, the place of an atom of its element before it."""
    weights, found = attention(weights), []
    for m in asked(elements, arrow):
        row = np.where(candidates(elements, arrow, m), weights[m], -np.inf if choose is np.argmax else np.inf)
        found.append(name(int(choose(row)), elements, arrow))
    return np.array(found)


def _before(elements, arrow, m):
    return np.arange(len(elements)) < arrow


MISTAKES = [
    Mistake(
        "you read columns, which say who attends to the atom",
        "Row m of the weights belongs to the token that attends. Which atom attends here, and which is attended to?",
        attention=lambda weights: weights.T,
    ),
    Mistake(
        "atoms of every element may be chosen",
        "Can a carbon become an oxygen in a reaction?",
        candidates=lambda elements, arrow, m: _before(elements, arrow, m) & (elements > 0),
    ),
    Mistake(
        "all tokens before the arrow may be chosen, bonds and brackets, too",
        "An element of 0 is no atom. Which tokens can an atom have been?",
        candidates=_before,
    ),
    Mistake(
        "atoms behind the arrow may be chosen, too",
        "Which of the atoms were put in: those before the arrow, or those behind it?",
        candidates=lambda elements, arrow, m: elements == elements[m],
    ),
    Mistake(
        "you count atoms, where the place among all tokens is asked for",
        "Bonds and brackets are tokens, too. Which number does the second atom have if a bond stands before it?",
        name=lambda place, elements, arrow: int((elements[:place] > 0).sum()),
    ),
    Mistake(
        "you choose the smallest weight",
        "Does a head look at what has a large weight, or at what has a small one?",
        choose=np.argmin,
    ),
    Mistake(
        "you map the atoms before the arrow",
        "The map goes from what comes out to what was put in. Which side is asked?",
        asked=lambda elements, arrow: [m for m in range(arrow) if elements[m] > 0],
        candidates=lambda elements, arrow, m: (np.arange(len(elements)) > arrow) & (elements == elements[m]),
    ),
]

_RNG = np.random.default_rng(2021)


def _case(name, elements, is_edge=False):
    elements = np.array(elements)
    scores = _RNG.normal(size=(len(elements), len(elements)))
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    arrow = int(np.flatnonzero(elements == -1)[0])
    return Case(name, {"weights": weights, "elements": np.maximum(elements, 0), "arrow": arrow}, is_edge)


EXERCISE = Exercise(
    atom_map,
    MISTAKES,
    cases=[
        _case("four atoms before the arrow, three behind", [6, 0, 8, 6, 0, 8, -1, 8, 0, 6, 6, 0]),
        _case("another reaction", [0, 7, 6, 6, 0, 8, 7, 8, 0, -1, 0, 6, 7, 8, 0, 6]),
        _case("no bond is written", [6, 6, 8, 8, 6, -1, 6, 8, 6]),
        _case("a reaction with many bonds", [0, 0, 6, 0, 6, 0, 0, 8, 8, -1, 0, 6, 0, 8, 0]),
    ],
    examples=[
        {
            "weights": np.array(
                [
                    [0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 0.1],
                    [0.2, 0.1, 0.1, 0.2, 0.1, 0.2, 0.1],
                    [0.1, 0.3, 0.1, 0.1, 0.1, 0.1, 0.2],
                    [0.2, 0.1, 0.2, 0.1, 0.1, 0.1, 0.2],
                    [0.25, 0.2, 0.15, 0.1, 0.1, 0.1, 0.1],
                    [0.05, 0.2, 0.15, 0.18, 0.02, 0.35, 0.05],
                    [0.1, 0.1, 0.2, 0.15, 0.05, 0.2, 0.2],
                ]
            ),
            "elements": np.array([6, 0, 6, 8, 0, 6, 8]),
            "arrow": 4,
        }
    ],
    result="(atoms,)",
    tried_on="{weights[0]} tokens",
    is_exact=True,
)
