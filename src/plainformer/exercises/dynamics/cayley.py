"""Exercise `cayley`: an orthogonal matrix from a skew-symmetric one."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def _with_identity(scores, sign):
    return np.eye(len(scores)) + sign * scores


def cayley(
    scores,
    *,
    factors=lambda scores: (_with_identity(scores, -1), _with_identity(scores, 1)),
    divide=lambda above, below: above @ np.linalg.inv(below),
):
    """Return the Cayley transform: identity minus scores, times the inverse of identity plus scores."""
    return divide(*factors(scores))


def _softmax_of(above, below):
    powers = np.exp((below - above) / 2)
    return powers / powers.sum(axis=1, keepdims=True)


MISTAKES = [
    Mistake(
        "the signs are swapped, so that you return the transpose, which turns the other way",
        "Which of the two factors is inverted: the one with plus, or the one with minus?",
        factors=lambda scores: (_with_identity(scores, 1), _with_identity(scores, -1)),
    ),
    Mistake(
        "you multiply the two factors; neither is inverted",
        "What should come out if a matrix is divided by itself?",
        divide=lambda above, below: above @ below,
    ),
    Mistake(
        "you divide number by number, where you should multiply by the inverse of a matrix",
        "Is the inverse of a matrix made of the inverses of its numbers?",
        divide=lambda above, below: above / below,
    ),
    Mistake(
        "you return one factor alone",
        "Is the product of your matrix with its transpose the identity?",
        divide=[lambda above, below: above, lambda above, below: np.linalg.inv(below)],
    ),
    Mistake(
        "you take a softmax: your rows sum to one, and the matrix is not orthogonal",
        "What stands in the place of the softmax here?",
        divide=_softmax_of,
    ),
]

_RNG = np.random.default_rng(1846)


def _case(name, size, is_edge=False):
    numbers = _RNG.normal(size=(size, size)).round(2)
    return Case(name, {"scores": numbers - numbers.T}, is_edge)


EXERCISE = Exercise(
    cayley,
    MISTAKES,
    cases=[
        _case("five tokens", 5),
        _case("four tokens", 4),
        _case("two tokens", 2),
        _case("one token", 1, is_edge=True),
    ],
    examples=[floats(scores=[[0, -0.5], [0.5, 0]])],
    result="(seq, seq)",
    tried_on="scores {scores}",
)
