"""Exercise `kernel_smooth`: an average of values, weighted by a Gaussian kernel."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _squares(queries, keys):
    return ((queries[:, None] - keys[None]) ** 2).sum(axis=2)


def _shares(powers):
    return powers / powers.sum(axis=1, keepdims=True)


def kernel_smooth(
    queries,
    keys,
    values,
    width,
    *,
    compare=_squares,
    scale=lambda width: 1 / (2 * width**2),
    turn=np.negative,
    share=_shares,
):
    """Return for every query the average of the values, weighted by how near their keys are."""
    return share(np.exp(turn(scale(width) * compare(queries, keys)))) @ values


MISTAKES = [
    Mistake(
        "the distance is not squared",
        "Which power of the distance stands in the exponent?",
        compare=lambda queries, keys: np.sqrt(_squares(queries, keys)),
    ),
    Mistake(
        "the scores are dot products, where they should be distances",
        "How near is a key that is far longer than the query, in the same direction?",
        compare=lambda queries, keys: -2 * queries @ keys.T,
    ),
    Mistake(
        "the width is not squared",
        "If all places are given in centimetres instead of metres, should the weights change?",
        scale=lambda width: 1 / (2 * width),
    ),
    Mistake(
        "the width is squared twice",
        "If all places are given in centimetres instead of metres, should the weights change?",
        scale=[lambda width: 1 / (2 * width**4), lambda width: 1 / (2 * width**2) ** 2],
    ),
    Mistake(
        "the factor two is missing beside the squared width",
        "What is written below the distance in the exponent of a bell curve?",
        scale=lambda width: 1 / width**2,
    ),
    Mistake(
        "you multiply by the squared width, where you should divide",
        "Should a wider kernel make the weights more equal, or less?",
        scale=[lambda width: 2 * width**2, lambda width: width**2 / 2],
    ),
    Mistake(
        "far keys weigh more than near ones: the minus sign is missing",
        "What is the weight of a key at the query itself, and what should it be?",
        turn=np.positive,
    ),
    Mistake(
        "the weights of a query do not sum to one",
        "What is the estimate if all values are 1, and what should it be?",
        share=lambda powers: powers,
    ),
    Mistake(
        "the weights sum to one for each key, where they should for each query",
        "What is the estimate if all values are 1, and what should it be?",
        share=lambda powers: powers / powers.sum(axis=0, keepdims=True),
    ),
]

_RNG = np.random.default_rng(1964)


def _case(name, q_seq, kv_seq, d_k, d_v, width, is_edge=False):
    return Case(
        name, draw(_RNG, 1, queries=(q_seq, d_k), keys=(kv_seq, d_k), values=(kv_seq, d_v)) | {"width": width}, is_edge
    )


EXERCISE = Exercise(
    kernel_smooth,
    MISTAKES,
    cases=[
        _case("a narrow kernel", 3, 5, 2, 4, 0.7),
        _case("a wide kernel", 4, 6, 3, 2, 1.5),
        _case("places on a line", 5, 4, 1, 3, 0.6, is_edge=True),
        _case("a single query", 1, 4, 2, 3, 0.8, is_edge=True),
    ],
    examples=[
        {
            "queries": np.array([[0.5], [2.0]]),
            "keys": np.array([[0.0], [1.0], [3.0]]),
            "values": np.array([[1.0], [2.0], [8.0]]),
            "width": 0.5,
        }
    ],
    result="(q_seq, d_v)",
    tried_on="queries {queries}, keys {keys}, values {values}",
)
