"""Exercise `narrow_embedding`: what the first block reads, from tables that are narrower than the blocks."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _norm(rows, axis=-1):
    centred = rows - rows.mean(axis=axis, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True))


def _unchanged(rows):
    return rows


def narrow_embedding(
    tokens,
    table,
    positions,
    segment,
    stored,
    bias,
    *,
    places=lambda tokens: np.arange(len(tokens)),
    add=lambda token, position, segment: token + position + segment,
    norm=_norm,
    turn=lambda stored: stored.T,
    shift=lambda rows, bias: rows + bias,
    norm_wide=_unchanged,
):
    """Return the rows that the first block reads, `(seq, d_model)`."""
    rows = norm(add(table[tokens], positions[places(tokens)], segment))
    return norm_wide(shift(rows @ turn(stored), bias))


MISTAKES = [
    Mistake(
        "the positions are missing",
        "What tells two equal tokens of a text apart?",
        add=lambda token, position, segment: token + segment,
    ),
    Mistake(
        "you count positions from 1",
        "Which row of the table belongs to the first token?",
        places=lambda tokens: np.arange(len(tokens)) + 1,
    ),
    Mistake(
        "you look positions up by the token's id",
        "Two equal tokens have one id. Do they stand at one place?",
        places=lambda tokens: tokens,
    ),
    Mistake(
        "the segment is missing",
        "How many vectors does the equation add for each token?",
        add=lambda token, position, segment: token + position,
    ),
    Mistake(
        "you normalise the token's vector before the others are added",
        "Of what is the norm taken in the equation: of one vector, or of the sum of three?",
        norm=_unchanged,
        add=lambda token, position, segment: _norm(token) + position + segment,
    ),
    Mistake(
        "you normalise each of the three vectors, and not their sum",
        "How often does the norm stand in the equation, and what stands inside?",
        norm=_unchanged,
        add=lambda token, position, segment: _norm(token) + _norm(position) + _norm(segment),
    ),
    Mistake(
        "the norm is missing",
        "What happens to the sum of the three vectors before it is widened?",
        norm=_unchanged,
    ),
    Mistake(
        "you normalise after the map, at the width of the blocks",
        "Which comes first in this model: the norm, or the map that widens?",
        norm=_unchanged,
        norm_wide=_norm,
    ),
    Mistake(
        "you normalise each feature over the tokens",
        "A token must not change when another joins it. Along which axis, then, is the mean taken?",
        norm=lambda rows: _norm(rows, axis=0),
    ),
    Mistake(
        "the matrix is not turned",
        "PyTorch stores (outputs, inputs). Which of the two axes belongs to the narrow side?",
        turn=lambda stored: stored,
    ),
    Mistake(
        "you forgot the bias",
        "What does the map return for a row of zeros?",
        shift=lambda rows, bias: rows,
    ),
]

_RNG = np.random.default_rng(2019)


def _case(name, tokens, narrow, d_model, vocab_size=7, longest=9):
    shapes = {"table": (vocab_size, narrow), "positions": (longest, narrow), "segment": (narrow,)}
    shapes |= {"stored": (d_model, narrow), "bias": (d_model,)}
    return Case(name, {"tokens": np.array(tokens), **draw(_RNG, 2, **shapes)})


EXERCISE = Exercise(
    narrow_embedding,
    MISTAKES,
    cases=[
        _case("a token that comes twice", [3, 0, 6, 3, 5], 4, 8),
        _case("a square matrix", [1, 4, 2], 6, 6),
        _case("another square matrix", [5, 2, 2, 0, 6, 1], 5, 5),
    ],
    examples=[
        {
            "tokens": np.array([2, 0, 2]),
            "table": np.array([[1.0, 0, 2], [0, 1, 0], [3, 1, 0]]),
            "positions": np.array([[0.0, 0, 1], [0, 2, 0], [1, 0, 0], [0, 1, 3]]),
            "segment": np.array([0.0, 1, 0]),
            "stored": np.array([[1.0, 2, 0], [0, 1, 0], [0, 3, 1]]),
            "bias": np.array([1.0, 0, 2]),
        }
    ],
    result="(seq, d_model)",
    tried_on="{tokens[0]} tokens, from a width of {table[1]} to {bias[0]}",
)
