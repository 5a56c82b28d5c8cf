"""Exercise `linear_columns`: a linear layer where tokens are columns."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def linear_columns(
    x,
    stored,
    bias,
    *,
    multiply=lambda stored, x: stored @ x,
    add=lambda y, bias: y + bias[:, None],
    finish=lambda y: y,
):
    """Return the layer's output for each token, as columns."""
    return finish(add(multiply(stored, x), bias))


MISTAKES = [
    Mistake(
        "your bias runs along the tokens: its entry n is added to token n, not to feature n",
        "NumPy lines up the last axes. Which shape must the bias have, to lie along the first?",
        add=lambda y, bias: y + bias,
    ),
    Mistake("you forgot the bias", "What does the layer return for a token of zeros?", add=lambda y, bias: y),
    Mistake(
        "you transpose the stored matrix, which is right for rows and wrong for columns",
        "The stored matrix has shape (outputs, inputs). On which side of one token's column does it stand?",
        multiply=lambda stored, x: stored.T @ x,
    ),
    Mistake(
        "you multiply from the right, as one does with rows, and so mix the tokens",
        "Entry [i, n] of the result is made of one token's features. Which column of x may enter?",
        multiply=[lambda stored, x: x @ stored, lambda stored, x: x @ stored.T],
    ),
    Mistake(
        "the right numbers, but your result has one row per token; here tokens are columns",
        "What shape would the output need, to be the next layer's tokens?",
        finish=lambda y: y.T,
    ),
]

_RNG = np.random.default_rng(2023)


def _case(name, seq, d_in, d_out, is_edge=False):
    return Case(name, draw(_RNG, 3, x=(d_in, seq), stored=(d_out, d_in), bias=(d_out,)), is_edge)


EXERCISE = Exercise(
    linear_columns,
    MISTAKES,
    cases=[
        _case("three sizes that differ", 5, 3, 4),
        _case("as many tokens as inputs and outputs", 4, 4, 4),
        _case("as many tokens as outputs", 4, 3, 4),
        _case("as many tokens as inputs", 3, 3, 4),
        _case("as many inputs as outputs", 5, 4, 4),
        _case("one token", 1, 3, 4, is_edge=True),
    ],
    examples=[
        floats(x=[[1, 0], [0, 2]], stored=[[1, 1], [0, 3]], bias=[10, 20]),
        floats(x=[[1, 0, 0], [0, 2, 0]], stored=[[1, 1], [0, 3]], bias=[10, 20]),
    ],
    result="(d_out, seq)",
    tried_on="tokens {x}, stored matrix {stored}",
)
