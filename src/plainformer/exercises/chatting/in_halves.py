"""Exercise `in_halves`: rows of heads, from rotary pairs side by side to pairs half a head apart."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _halves(head):
    """The even rows, then the odd ones."""
    return np.concatenate([head[0::2], head[1::2]])


def _each(stored, num_heads, change):
    """Change the rows of each head."""
    return np.concatenate([change(head) for head in np.split(stored, num_heads)])


def in_halves(stored, num_heads, *, over=_each, change=_halves):
    """Return the matrix with its rows in another order, `(num_heads * d_k, d_model)`."""
    return over(stored, num_heads, change)


MISTAKES = [
    Mistake(
        "you put halves side by side, which is the way back",
        "Where does row 1 of the file come from: from place 1 of our head, or from the middle?",
        change=lambda head: np.stack(np.split(head, 2), axis=1).reshape(head.shape),
    ),
    Mistake(
        "you order the rows of all heads together",
        "A pair lies within one head. Which rows belong to head 1?",
        over=lambda stored, num_heads, change: change(stored),
    ),
    Mistake(
        "the odd rows come first",
        "Which number of a pair is the one that stands in the first half?",
        change=lambda head: np.concatenate([head[1::2], head[0::2]]),
    ),
    Mistake(
        "you change the order of the columns",
        "The file has a row for each number of a query. Which axis of the matrix are the rows?",
        over=lambda stored, num_heads, change: np.concatenate([stored[:, 0::2], stored[:, 1::2]], axis=1),
    ),
    Mistake(
        "the rows stay as the file has them",
        "Print the order of the rows for a head of width 4. Is it 0, 2, 1, 3?",
        change=lambda head: head,
    ),
]

_RNG = np.random.default_rng(8)


def _case(name, heads, width, d_model, is_edge=False):
    return Case(name, {**draw(_RNG, 2, stored=(heads * width, d_model)), "num_heads": heads}, is_edge)


EXERCISE = Exercise(
    in_halves,
    MISTAKES,
    cases=[
        _case("two heads of width 6", 2, 6, 5),
        _case("three heads of width 8", 3, 8, 7),
        _case("one head of width 10", 1, 10, 4),
        _case("heads of one pair", 4, 2, 3, is_edge=True),
    ],
    examples=[{"stored": np.arange(12.0).reshape(12, 1) + np.arange(2) / 10, "num_heads": 2}],
    result="(num_heads * d_k, d_model)",
    tried_on="{num_heads} heads in a matrix of {stored[0]} rows",
)
