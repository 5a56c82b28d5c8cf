"""Exercise `merged_weight`: one matrix that does alone what a matrix and its adapter do together."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def merged_weight(
    weight,
    adapter_in,
    adapter_out,
    scale,
    *,
    product=lambda first, second: first @ second,
    factor=lambda scale, rank: scale,
    join=lambda weight, added: weight + added,
):
    """Return the matrix to put in the place of both."""
    return join(weight, factor(scale, adapter_in.shape[1]) * product(adapter_in, adapter_out))


MISTAKES = [
    Mistake(
        "the scale is forgotten at merging",
        "While it learned, the adapter's part was multiplied by the scale. Who does that once it is merged?",
        factor=lambda scale, rank: 1.0,
    ),
    Mistake(
        "you divide by the rank once more",
        "scale is already alpha divided by the rank. How often should that be done?",
        factor=lambda scale, rank: scale / rank,
    ),
    Mistake(
        "the scale is squared: each of the thin matrices is multiplied by it",
        "The scale stands once in the equation. Which of the two matrices should carry it, if one does?",
        factor=lambda scale, rank: scale**2,
    ),
    Mistake(
        "you subtract the adapter: that takes a merged one out again",
        "Which sign stands before the scale?",
        join=lambda weight, added: weight - added,
    ),
    Mistake(
        "the frozen matrix is missing",
        "The merged layer runs without the old one. Where is what the old one did?",
        join=lambda weight, added: added,
    ),
    Mistake(
        "the adapter is missing: you return the frozen matrix",
        "What was learned stands in the thin matrices. How does it get into this one?",
        join=lambda weight, added: weight,
    ),
]

_RNG = np.random.default_rng(2021)


def _case(name, d_in, rank, d_out, scale, is_edge=False):
    shapes = {"weight": (d_in, d_out), "adapter_in": (d_in, rank), "adapter_out": (rank, d_out)}
    return Case(name, draw(_RNG, 2, **shapes) | {"scale": scale}, is_edge)


EXERCISE = Exercise(
    merged_weight,
    MISTAKES,
    cases=[
        _case("a matrix of 6 rows and 5 columns", 6, 3, 5, 2.5),
        _case("a matrix of 4 rows and 7 columns", 4, 2, 7, 0.5),
        _case("rank 1", 3, 1, 5, 3.0, is_edge=True),
    ],
    examples=[
        {
            "weight": np.array([[1.0, 0], [0, 1]]),
            "adapter_in": np.array([[1.0, 0], [2, 1]]),
            "adapter_out": np.array([[3.0, 1], [0, 2]]),
            "scale": 0.5,
        }
    ],
    result="(d_in, d_out)",
    tried_on="a matrix of {weight[0]} × {weight[1]} and rank {adapter_in[1]}",
)
