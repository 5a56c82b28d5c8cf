"""Exercise `spread`: how far a matrix of tokens is from one whose rows are all the mean token."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def _length(x):
    return np.sqrt((x**2).sum())


def spread(x, *, mean=lambda x: x.mean(axis=0, keepdims=True), measure=_length, compare=lambda x: x):
    """Return the distance of `x` from its mean token in every row, relative to the size of `x`."""
    return np.asarray(measure(x - mean(x)) / measure(compare(x)))


MISTAKES = [
    Mistake(
        "you take the mean of each token over its features, where you should take the mean of the tokens",
        "If all tokens are equal, what is left after you subtract?",
        mean=lambda x: x.mean(axis=1, keepdims=True),
    ),
    Mistake(
        "you subtract one number, the mean of the whole matrix",
        "If all tokens are equal, what is left after you subtract?",
        mean=lambda x: x.mean(keepdims=True),
    ),
    Mistake(
        "you compare with the size of the mean token, where it should be the size of the whole matrix",
        "What should come out for tokens that cancel, such as one and its negative?",
        compare=[
            lambda x: x.mean(axis=0, keepdims=True),
            lambda x: np.broadcast_to(x.mean(axis=0, keepdims=True), x.shape),
        ],
    ),
    Mistake(
        "you compare with the size of what is left, so that the result is always 1",
        "Which two matrices does the fraction compare?",
        compare=lambda x: x - x.mean(axis=0, keepdims=True),
    ),
    Mistake(
        "you forget the root: the result is the square of what it should be",
        "What is the length of the row (3, 4)?",
        measure=lambda x: (x**2).sum(),
    ),
    Mistake(
        "you add absolute values, where you should add squares and take the root",
        "What is the length of the row (3, 4)?",
        measure=lambda x: np.abs(x).sum(),
    ),
    Mistake(
        "you measure by the largest singular value, where it should be by the sum of all squares",
        "Which norm does jnp.linalg.norm(x, 2) give for a matrix, and which does jnp.linalg.norm(x)?",
        measure=lambda x: np.linalg.norm(x, 2),
    ),
]

_RNG = np.random.default_rng(2021)

EXERCISE = Exercise(
    spread,
    MISTAKES,
    cases=[
        Case("a matrix of tokens", draw(_RNG, 2, x=(5, 3))),
        Case("more features than tokens", draw(_RNG, 2, x=(4, 6))),
        Case("tokens that are all alike", {"x": np.tile(draw(_RNG, 2, x=(1, 4))["x"], (3, 1))}, is_edge=True),
        Case("a single token", draw(_RNG, 2, x=(1, 5)), is_edge=True),
    ],
    examples=[floats(x=[[3, 1], [1, 1]]), floats(x=[[1, 0], [0, 1], [2, 2]])],
    result="()",
    tried_on="{x[0]} tokens of width {x[1]}",
)
