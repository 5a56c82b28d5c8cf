"""Exercise `attend_columns`: attention where tokens are columns."""

from types import SimpleNamespace

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats
from plainformer.exercises.self_attention.scores import SCALE, SCALE_BY_LENGTH
from plainformer.exercises.self_attention.weights import softmax


def attend_columns(
    queries,
    keys,
    values,
    *,
    compare=lambda queries, keys: keys.T @ queries,
    scale=lambda n: n.d_k**-0.5,
    normalise=lambda scores: softmax(scores, axis=0),
    average=lambda weights, values: values @ weights,
    finish=lambda outputs: outputs,
):
    """Return one output per query, as columns."""
    n = SimpleNamespace(d_k=queries.shape[0], q_seq=queries.shape[1], kv_seq=keys.shape[1])
    return finish(average(normalise(compare(queries, keys) * scale(n)), values))


MISTAKES = [
    *SCALE,
    *SCALE_BY_LENGTH,
    Mistake(
        "your weights sum to one over the queries: the softmax runs along rows, as if tokens were rows",
        "In which row or column of your scores do you find all keys of one query?",
        normalise=lambda scores: softmax(scores, axis=1),
    ),
    Mistake(
        "your weights sum to one over all queries and keys together, not for each query",
        "Each query has one unit of attention of its own. Over which axis do you sum?",
        normalise=lambda scores: softmax(scores, axis=(0, 1)),
    ),
    Mistake(
        "your scores are transposed: column n belongs to key n, not to query n",
        "Which of queries.T @ keys and keys.T @ queries has one column per query?",
        compare=lambda queries, keys: queries.T @ keys,
    ),
    Mistake(
        "the weights are transposed in the product with the values",
        "Output n is an average with the weights of query n. Are those a row or a column?",
        average=lambda weights, values: values @ weights.T,
    ),
    Mistake(
        "you use the formula for rows as it stands, so that features are compared, where tokens should be",
        "A score is the dot product of two columns. Which product of matrices takes those?",
        {
            "compare": lambda queries, keys: queries @ keys.T,
            "scale": lambda n: n.q_seq**-0.5,
            "normalise": softmax,
            "average": np.matmul,
        },
        {"compare": lambda queries, keys: queries @ keys.T, "normalise": softmax, "average": np.matmul},
    ),
    Mistake(
        "the right numbers, but your result has one row per query; here tokens are columns",
        "What shape would the output need, to be the next layer's tokens?",
        finish=lambda outputs: outputs.T,
    ),
]

_RNG = np.random.default_rng(2023)


def _case(name, q_seq, kv_seq, d_k, d_v, is_edge=False):
    inputs = draw(_RNG, 3, queries=(d_k, q_seq), keys=(d_k, kv_seq), values=(d_v, kv_seq))
    return Case(name, inputs, is_edge)


_NARROW = {"queries": [[1, 0], [1, 2], [0, 0], [0, 0]], "keys": [[2, 0], [0, 1], [0, 0], [0, 0]]}

EXERCISE = Exercise(
    attend_columns,
    MISTAKES,
    cases=[
        _case("more keys than queries", 5, 7, 3, 2),
        _case("as many queries as keys, and values as wide as keys", 6, 6, 4, 4),
        _case("one query and one key", 1, 1, 3, 2, is_edge=True),
    ],
    examples=[
        floats(**_NARROW, values=[[8, 0], [0, 4], [1, 2]]),
        floats(**_NARROW, values=[[8, 4]]),
        floats(queries=[[1, 0], [0, 2]], keys=[[2, 0], [1, 1]], values=[[8, 0], [0, 4]]),
    ],
    result="(d_v, q_seq)",
    tried_on="queries {queries}, keys {keys}",
)
