"""Exercise `attend`: scaled dot-product attention with a mask."""

import numpy as np

from plainformer.exercises.model import Exercise, Mistake
from plainformer.exercises.self_attention._cases import attention_cases, attention_examples
from plainformer.exercises.self_attention.scores import SCORES
from plainformer.exercises.self_attention.weights import MASK, NORMALISE, OVERFLOW, weights


def attend(queries, keys, values, mask, *, roles=lambda q, k, v: (q, k, v), average=np.matmul, **steps):
    """Return the right attention; what is added to `steps` by name are sizes that a wrong scale may use."""
    d_v = values.shape[-1]
    queries, keys, values = roles(queries, keys, values)
    return average(weights(queries, keys, mask, d_v=d_v, **steps), values)


SCALE_BY_VALUES = [
    Mistake(
        "you divide by the root of the values' width, not by the root of d_k",
        "Which two vectors go into a score, and how long are they?",
        scale=lambda n: n.d_v**-0.5,
    )
]
ROLES = [
    Mistake(
        "keys and values are swapped: you compare with the values and average the keys",
        "Which of the two is compared with the query, and which is passed on?",
        roles=lambda q, k, v: (q, v, k),
    ),
    Mistake(
        "you average the keys; the values play no part",
        "The keys say where to look. What is passed on from there?",
        roles=lambda q, k, v: (q, k, k),
    ),
    Mistake(
        "the weights are transposed in the product with the values",
        "Output n is an average with the weights of query n. In which row or column do you find those?",
        average=lambda weights, values: weights.swapaxes(-1, -2) @ values,
    ),
]
OUTPUT = [
    Mistake(
        "you return the weights: the values are still to be averaged with them",
        "A weight says how much of a value is taken. Of which values?",
        average=lambda weights, values: weights,
    ),
    Mistake(
        "the right numbers, but transposed: your result has one column per query",
        "In this book tokens are rows. Which axis should count the queries?",
        average=lambda weights, values: (weights @ values).swapaxes(-1, -2),
    ),
]

EXERCISE = Exercise(
    attend,
    [*SCORES, *NORMALISE, *MASK, *OVERFLOW, *SCALE_BY_VALUES, *ROLES, *OUTPUT],
    cases=attention_cases("queries keys values mask"),
    examples=attention_examples("queries keys values mask"),
    result="(q_seq, d_v)",
    tried_on="{queries[0]} queries, {keys[0]} keys",
)
