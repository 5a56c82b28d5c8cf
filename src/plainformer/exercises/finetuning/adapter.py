"""Exercise `adapter`: a frozen matrix with two thin ones beside it."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def adapter(
    x,
    weight,
    adapter_in,
    adapter_out,
    alpha,
    *,
    frozen=lambda x, weight: x @ weight,
    thin=lambda x, first, second: x @ first @ second,
    factor=lambda alpha, rank, d_in: alpha / rank,
    join=lambda frozen, added, factor: frozen + factor * added,
):
    """Return what the layer with its adapter makes of each row."""
    scale = factor(alpha, adapter_in.shape[1], adapter_in.shape[0])
    return join(frozen(x, weight), thin(x, adapter_in, adapter_out), scale)


MISTAKES = [
    Mistake(
        "the scale is missing: you add the product of the thin matrices as it is",
        "What does the equation multiply the adapter's part by, before it is added?",
        factor=lambda alpha, rank, d_in: 1.0,
    ),
    Mistake(
        "you multiply by alpha, and do not divide by the rank",
        "If the rank doubles, twice as many products are added up. What keeps their sum of the same size?",
        factor=lambda alpha, rank, d_in: alpha,
    ),
    Mistake(
        "you multiply by the rank, where you should divide by it",
        "If the rank doubles, twice as many products are added up. What keeps their sum of the same size?",
        factor=lambda alpha, rank, d_in: alpha * rank,
    ),
    Mistake(
        "you divide by the root of the rank",
        "That is another published rule. Which one does this exercise ask for?",
        factor=lambda alpha, rank, d_in: alpha / rank**0.5,
    ),
    Mistake(
        "you divide by the width of the input, not by the rank",
        "Over how many columns of adapter_in does the product with adapter_out sum?",
        factor=lambda alpha, rank, d_in: alpha / d_in,
    ),
    Mistake(
        "the frozen matrix is missing: you return the adapter's part alone",
        "What did the layer do before it was adapted, and who does that now?",
        join=lambda frozen, added, factor: factor * added,
    ),
    Mistake(
        "the adapter is missing: you return what the frozen matrix makes of x",
        "What do adapter_in and adapter_out add to it?",
        join=lambda frozen, added, factor: frozen,
    ),
    Mistake(
        "you subtract the adapter's part, where you should add it",
        "Which sign stands before the scale?",
        join=lambda frozen, added, factor: frozen - factor * added,
    ),
    Mistake(
        "the scale multiplies the frozen part, too",
        "At the start adapter_out is all zeros. Should the layer then do what it did before?",
        join=lambda frozen, added, factor: factor * (frozen + added),
    ),
]

_RNG = np.random.default_rng(2106)


def _case(name, rows, d_in, rank, d_out, alpha, is_edge=False):
    shapes = {"x": (rows, d_in), "weight": (d_in, d_out), "adapter_in": (d_in, rank), "adapter_out": (rank, d_out)}
    return Case(name, draw(_RNG, 2, **shapes) | {"alpha": alpha}, is_edge)


EXERCISE = Exercise(
    adapter,
    MISTAKES,
    cases=[
        _case("5 rows", 5, 6, 3, 4, 7.0),
        _case("a layer that widens", 3, 4, 2, 8, 5.0),
        _case("rank 1", 4, 3, 1, 5, 0.5, is_edge=True),
    ],
    examples=[
        {
            "x": np.array([[1.0, 2, 0]]),
            "weight": np.array([[1.0, 0], [0, 1], [1, 1]]),
            "adapter_in": np.array([[1.0, 0], [0, 1], [1, 1]]),
            "adapter_out": np.array([[2.0, 0], [0, 1]]),
            "alpha": 4.0,
        }
    ],
    result="(rows, d_out)",
    tried_on="{x[0]} rows, a matrix of {weight[0]} × {weight[1]} and rank {adapter_in[1]}",
)
