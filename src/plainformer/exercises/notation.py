"""The exercises of chapter 00: attention and a linear layer where tokens are columns."""

from types import SimpleNamespace

import numpy as np

from plainformer.exercises import attention_mistakes as wrong
from plainformer.exercises.exercise import Case, Exercise, Mistake


def _attend_columns(
    queries,
    keys,
    values,
    *,
    compare=lambda queries, keys: keys.T @ queries,
    scale=lambda n: n.d_k**-0.5,
    normalise=lambda scores: wrong.softmax(scores, axis=0),
    average=lambda weights, values: values @ weights,
    finish=lambda outputs: outputs,
):
    n = SimpleNamespace(d_k=queries.shape[0], q_seq=queries.shape[1], kv_seq=keys.shape[1])
    return finish(average(normalise(compare(queries, keys) * scale(n)), values))


def _linear_columns(
    x,
    stored,
    bias,
    *,
    multiply=lambda stored, x: stored @ x,
    add=lambda y, bias: y + bias[:, None],
    finish=lambda y: y,
):
    return finish(add(multiply(stored, x), bias))


def _attend_cases() -> list[Case]:
    rng = np.random.default_rng(2023)

    def case(name, q_seq, kv_seq, d_k, d_v, is_edge=False):
        shapes = {"queries": (d_k, q_seq), "keys": (d_k, kv_seq), "values": (d_v, kv_seq)}
        return Case(name, {each: rng.normal(size=shape).round(3) for each, shape in shapes.items()}, is_edge)

    return [
        case("more keys than queries", 5, 7, 3, 2),
        case("as many queries as keys, and values as wide as keys", 6, 6, 4, 4),
        case("one query and one key", 1, 1, 3, 2, is_edge=True),
    ]


def _attend_examples() -> list[dict]:
    queries, keys = [[1, 0], [1, 2], [0, 0], [0, 0]], [[2, 0], [0, 1], [0, 0], [0, 0]]
    examples = [{"queries": queries, "keys": keys, "values": values} for values in ([[8, 0], [0, 4], [1, 2]], [[8, 4]])]
    wide = {"queries": [[1, 0], [0, 2]], "keys": [[2, 0], [1, 1]], "values": [[8, 0], [0, 4]]}
    return [{name: np.array(value, np.float64) for name, value in each.items()} for each in (*examples, wide)]


def _linear_cases() -> list[Case]:
    rng = np.random.default_rng(2023)

    def case(name, seq, d_in, d_out, is_edge=False):
        shapes = {"x": (d_in, seq), "stored": (d_out, d_in), "bias": (d_out,)}
        return Case(name, {each: rng.normal(size=shape).round(3) for each, shape in shapes.items()}, is_edge)

    return [
        case("three sizes that differ", 5, 3, 4),
        case("as many tokens as inputs and outputs", 4, 4, 4),
        case("as many tokens as outputs", 4, 3, 4),
        case("as many tokens as inputs", 3, 3, 4),
        case("as many inputs as outputs", 5, 4, 4),
        case("one token", 1, 3, 4, is_edge=True),
    ]


def _linear_examples() -> list[dict]:
    shared = {"x": [[1, 0], [0, 2]], "stored": [[1, 1], [0, 3]], "bias": [10, 20]}
    wide = {"x": [[1, 0, 0], [0, 2, 0]], "stored": [[1, 1], [0, 3]], "bias": [10, 20]}
    return [{name: np.array(value, np.float64) for name, value in each.items()} for each in (shared, wide)]


ATTEND = [
    *wrong.SCALE,
    *wrong.SCALE_BY_LENGTH,
    Mistake(
        "normalise",
        "your weights sum to one over the queries: the softmax runs along rows, as if tokens were rows",
        "In which row or column of your scores do you find all keys of one query?",
        lambda scores: wrong.softmax(scores, axis=1),
    ),
    Mistake(
        "normalise",
        "your weights sum to one over all queries and keys together, not for each query",
        "Each query has one unit of attention of its own. Over which axis do you sum?",
        lambda scores: wrong.softmax(scores, axis=(0, 1)),
    ),
    Mistake(
        "compare",
        "your scores are transposed: column n belongs to key n, not to query n",
        "Which of queries.T @ keys and keys.T @ queries has one column per query?",
        lambda queries, keys: queries.T @ keys,
    ),
    Mistake(
        "average",
        "the weights are transposed in the product with the values",
        "Output n is an average with the weights of query n. Are those a row or a column?",
        lambda weights, values: values @ weights.T,
    ),
    Mistake(
        "compare",
        "you use the formula for rows as it stands, so that features are compared, where tokens should be",
        "A score is the dot product of two columns. Which product of matrices takes those?",
        {
            "compare": lambda queries, keys: queries @ keys.T,
            "scale": lambda n: n.q_seq**-0.5,
            "normalise": wrong.softmax,
            "average": np.matmul,
        },
        {
            "compare": lambda queries, keys: queries @ keys.T,
            "normalise": wrong.softmax,
            "average": np.matmul,
        },
    ),
    Mistake(
        "finish",
        "the right numbers, but your result has one row per query; here tokens are columns",
        "What shape would the output need, to be the next layer's tokens?",
        lambda outputs: outputs.T,
    ),
]
LINEAR = [
    Mistake(
        "add",
        "your bias runs along the tokens: its entry n is added to token n, not to feature n",
        "NumPy lines up the last axes. Which shape must the bias have, to lie along the first?",
        lambda y, bias: y + bias,
    ),
    Mistake(
        "add",
        "you forgot the bias",
        "What does the layer return for a token of zeros?",
        lambda y, bias: y,
    ),
    Mistake(
        "multiply",
        "you transpose the stored matrix, which is right for rows and wrong for columns",
        "The stored matrix has shape (outputs, inputs). On which side of one token's column does it stand?",
        lambda stored, x: stored.T @ x,
    ),
    Mistake(
        "multiply",
        "you multiply from the right, as one does with rows, and so mix the tokens",
        "Entry [i, n] of the result is made of one token's features. Which column of x may enter?",
        lambda stored, x: x @ stored,
        lambda stored, x: x @ stored.T,
    ),
    Mistake(
        "finish",
        "the right numbers, but your result has one row per token; here tokens are columns",
        "What shape would the output need, to be the next layer's tokens?",
        lambda y: y.T,
    ),
]

EXERCISES = {
    "attend_columns": Exercise(
        _attend_columns,
        ATTEND,
        _attend_cases,
        _attend_examples,
        "(d_v, q_seq)",
        "queries {queries}, keys {keys}",
    ),
    "linear_columns": Exercise(
        _linear_columns,
        LINEAR,
        _linear_cases,
        _linear_examples,
        "(d_out, seq)",
        "tokens {x}, stored matrix {stored}",
    ),
}
