"""Exercise `weights`: the softmax of the scores over the keys that the mask allows."""

from functools import partial

import numpy as np

from plainformer.exercises.model import Exercise, Mistake
from plainformer.exercises.self_attention._cases import attention_cases, attention_examples
from plainformer.exercises.self_attention.scores import SCORES, scores


def softmax(scores, mask=None, *, axis=-1, guard=True, subtract=True):
    """Return the softmax, with switches that break it; what `mask` hides is minus infinity already."""
    largest = scores.max(axis=axis, keepdims=True) if subtract else np.zeros_like(scores)
    exponentials = np.exp(scores - np.where(np.isneginf(largest) & guard, 0, largest))
    total = exponentials.sum(axis=axis, keepdims=True)
    return exponentials / np.where((total == 0) & guard, 1, total)


def _unhidden(scores, mask):
    return scores


def weights(
    queries,
    keys,
    mask,
    *,
    hide=lambda scores, mask: np.where(mask, scores, -np.inf),
    normalise=softmax,
    after=lambda weights, d_k: weights,
    **steps,
):
    """Return each query's weights: they sum to one, or are zero if it may attend to nothing."""
    return after(normalise(hide(scores(queries, keys, **steps), mask), mask), queries.shape[-1])


NORMALISE = [
    Mistake(
        "your weights sum to one over the queries, not over the keys",
        "Each query shares out one unit of attention among the keys. Over which axis do you sum?",
        normalise=partial(softmax, axis=-2),
    ),
    Mistake(
        "your weights sum to one over all queries and keys together, not for each query",
        "Each query has one unit of attention of its own. Over which axis do you sum?",
        normalise=partial(softmax, axis=(-2, -1)),
    ),
    Mistake(
        "you exponentiate, but do not divide by the sum",
        "What must the weights of one query add up to?",
        normalise=[
            lambda scores, mask: np.exp(scores),
            lambda scores, mask: np.exp(scores - scores.max(axis=-1, keepdims=True)),
        ],
    ),
    Mistake(
        "you divide the scores by their sum without exponentiating them first",
        "A score may be negative, a weight may not. What makes it positive?",
        normalise=lambda scores, mask: (
            np.where(mask, scores, 0) / np.where(mask, scores, 0).sum(axis=-1, keepdims=True)
        ),
    ),
    Mistake(
        "you use the scores themselves as weights: the softmax is missing",
        "What must the weights of one query add up to, and may they be negative?",
        normalise=[lambda scores, mask: np.where(mask, scores, 0), lambda scores, mask: scores],
    ),
    Mistake(
        "you take the softmax twice, which flattens the weights",
        "The weights are positive and add up to one after the first time. What is the second for?",
        normalise=[
            lambda scores, mask: softmax(softmax(scores)),
            lambda scores, mask: softmax(np.where(mask, softmax(scores), -np.inf)),
        ],
    ),
    Mistake(
        "you return the logarithms of the weights: this is log_softmax",
        "May a weight be negative?",
        normalise=lambda scores, mask: np.log(softmax(scores)),
    ),
    Mistake(
        "you divide by the root of d_k after the softmax, where the weights add up to one already",
        "Scaling is to keep the softmax from saturating. Must it come before or after?",
        {"scale": lambda n: 1.0, "after": lambda weights, d_k: weights * d_k**-0.5},
        {"after": lambda weights, d_k: weights * d_k**-0.5},
    ),
]
TRANSPOSE = [
    Mistake(
        "the right weights, but transposed: row n belongs to key n, not to query n",
        "What should a row of the weights add up to?",
        after=lambda weights, d_k: weights.T,
    )
]
MASK = [
    Mistake(
        "your mask is transposed: it hides in rows what it should hide in columns",
        "mask[n, m] says whether query n may attend to key m. Which of the two counts the rows of your scores?",
        hide=lambda scores, mask: np.where(mask.swapaxes(-1, -2), scores, -np.inf),
    ),
    Mistake("your mask plays no part", "What weight should a key have where the mask is False?", hide=_unhidden),
    Mistake(
        "you set the hidden scores to zero before the softmax, so hidden keys still get a weight",
        "exp(0) is 1. Which score has the exponential 0?",
        hide=lambda scores, mask: np.where(mask, scores, 0),
    ),
    Mistake(
        "you hide keys after the softmax, so what is left no longer sums to one",
        "If you hide before the softmax, who shares out the weight of the hidden keys?",
        hide=_unhidden,
        normalise=lambda scores, mask: np.where(mask, softmax(scores), 0),
    ),
    Mistake(
        "your mask is inverted: you hide the keys that it allows",
        "True means: may attend. Which scores, then, should become minus infinity?",
        {"hide": lambda scores, mask: np.where(mask, -np.inf, scores)},
        {"hide": lambda scores, mask: np.where(mask, -1e9, scores)},
        {"hide": lambda scores, mask: np.where(mask, -np.inf, scores), "normalise": partial(softmax, guard=False)},
    ),
    Mistake(
        "you add the mask to the scores as a 1 or a 0, so hidden keys still get a weight",
        "What would you have to add to a score, to make its exponential 0?",
        hide=lambda scores, mask: scores + mask,
    ),
    Mistake(
        "your result is not a number (nan) wherever a query may attend to anything",
        "Zero times infinity is nan. If you multiply the mask by infinity, could you choose with where instead?",
        hide=[lambda scores, mask: np.where(mask, np.nan, -np.inf), lambda scores, mask: np.full_like(scores, np.nan)],
    ),
    Mistake(
        "you divide 0 by 0: a query that may attend to nothing gets nan",
        "Such a query should give zeros. What can you divide by instead, when the sum is 0?",
        normalise=partial(softmax, guard=False),
    ),
    Mistake(
        "a query that may attend to nothing attends to everything: its hidden scores are very negative, but all equal",
        "The softmax sees only differences of scores. How can such a query give zeros instead?",
        hide=lambda scores, mask: np.where(mask, scores, -1e9),
    ),
]
OVERFLOW = [
    Mistake(
        "your exponential overflows: for large scores you divide infinity by infinity",
        "The softmax does not change when all scores of a row go down by the same amount. Which amount is safe?",
        normalise=lambda scores, mask: softmax(scores.astype(np.float32), subtract=False),
    )
]

EXERCISE = Exercise(
    weights,
    [*SCORES, *NORMALISE, *MASK, *OVERFLOW, *TRANSPOSE],
    cases=attention_cases("queries keys mask"),
    examples=attention_examples("queries keys mask"),
    result="(q_seq, kv_seq)",
    tried_on="{queries[0]} queries, {keys[0]} keys",
    has_rows_of_weights=True,
)
