"""Exercise `triangular_step`: a residual step in which each number reads those before it."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def triangular_step(
    x,
    matrix,
    bias,
    *,
    keep=lambda matrix: np.triu(matrix, 1),
    shift=lambda y, bias: np.tanh(y + bias),
    add=lambda x, step: x + step,
):
    """Return each row of x and, added to it, what its numbers read of those before them."""
    return add(x, shift(x @ keep(matrix), bias))


MISTAKES = [
    Mistake(
        "the diagonal stays in your matrix, so that a number reads itself, and volumes change",
        "What is on the diagonal of the Jacobian matrix then?",
        keep=np.triu,
    ),
    Mistake(
        "you use the whole matrix",
        "Which numbers of a row may number j read, and which entries of column j belong to them?",
        keep=lambda matrix: matrix,
    ),
    Mistake(
        "you keep what is below the diagonal: each number reads those after it",
        "In x @ matrix, entry [i, j] carries number i to number j. Which i stand before j?",
        keep=lambda matrix: np.tril(matrix, -1),
    ),
    Mistake(
        "you transpose the matrix, as one does where rows are columns",
        "In x @ matrix, which index of the matrix belongs to the number that is read?",
        keep=lambda matrix: np.triu(matrix, 1).T,
    ),
    Mistake(
        "you leave out the row itself",
        "What should come of a row if matrix and bias are zero?",
        add=lambda x, step: step,
    ),
    Mistake(
        "there is no tanh in your step",
        "By how much can your step change a number?",
        shift=lambda y, bias: y + bias,
    ),
    Mistake("you forgot the bias", "What is added to a row of zeros?", shift=lambda y, bias: np.tanh(y)),
    Mistake(
        "you add the bias after tanh",
        "By how much can your step change a number if the bias is large?",
        shift=lambda y, bias: np.tanh(y) + bias,
    ),
]

_RNG = np.random.default_rng(1788)


def _case(name, seq, size, is_edge=False):
    return Case(name, draw(_RNG, 2, x=(seq, size), matrix=(size, size), bias=(size,)), is_edge)


EXERCISE = Exercise(
    triangular_step,
    MISTAKES,
    cases=[
        _case("five rows of four", 5, 4),
        _case("three rows of three", 3, 3),
        _case("one row", 1, 3, is_edge=True),
    ],
    examples=[floats(x=[[1, 0.5], [0, 2]], matrix=[[1, -1], [2, 0.5]], bias=[0.5, 0])],
    result="(seq, d_model)",
    tried_on="rows {x}, matrix {matrix}",
)
