"""The mistakes in scores, weights and attention that the exercises know by name."""

from functools import partial

import numpy as np

from plainformer.exercises.exercise import Mistake


def softmax(scores, mask=None, *, axis=-1, guard=True, subtract=True):
    """The right softmax, with switches that break it; what `mask` hides is minus infinity already."""
    largest = scores.max(axis=axis, keepdims=True) if subtract else np.zeros_like(scores)
    exponentials = np.exp(scores - np.where(np.isneginf(largest) & guard, 0, largest))
    total = exponentials.sum(axis=axis, keepdims=True)
    return exponentials / np.where((total == 0) & guard, 1, total)


def _unhidden(scores, mask):
    return scores


SCALE = [
    Mistake(
        "scale",
        "your scores are not scaled: they are the bare dot products",
        "The longer the keys, the larger their dot products. What do you divide by, to make up for that?",
        lambda n: 1.0,
    ),
    Mistake(
        "scale",
        "you multiply by the root of d_k, where you should divide by it",
        "Are the dot products of long vectors too large or too small?",
        lambda n: n.d_k**0.5,
    ),
    Mistake(
        "scale",
        "you divide by d_k (or twice by its root), not by its root",
        "The sum of d_k independent products of variance 1 has variance d_k. What, then, is its typical size?",
        lambda n: 1 / n.d_k,
    ),
]
SCALE_BY_LENGTH = [
    Mistake(
        "scale",
        "you divide by the root of the number of queries, not by the root of d_k",
        "Which axis of queries.shape is d_k?",
        lambda n: n.q_seq**-0.5,
    ),
    Mistake(
        "scale",
        "you divide by the root of the number of keys, not by the root of d_k",
        "Which axis of keys.shape is d_k?",
        lambda n: n.kv_seq**-0.5,
    ),
]
SCALE_BY_VALUES = [
    Mistake(
        "scale",
        "you divide by the root of the values' width, not by the root of d_k",
        "Which two vectors go into a score, and how long are they?",
        lambda n: n.d_v**-0.5,
    ),
]
COMPARE = [
    Mistake(
        "compare",
        "your scores are transposed: row n belongs to key n, not to query n",
        "Which of queries @ keys.T and keys @ queries.T has one row per query?",
        lambda queries, keys: keys @ queries.swapaxes(-1, -2),
    ),
    Mistake(
        "compare",
        "you compare the queries with one another; the keys play no part",
        "A score says how well a key answers a query. Where do the keys enter?",
        lambda queries, keys: queries @ queries.swapaxes(-1, -2),
    ),
]
NORMALISE = [
    Mistake(
        "normalise",
        "your weights sum to one over the queries, not over the keys",
        "Each query shares out one unit of attention among the keys. Over which axis do you sum?",
        partial(softmax, axis=-2),
    ),
    Mistake(
        "normalise",
        "your weights sum to one over all queries and keys together, not for each query",
        "Each query has one unit of attention of its own. Over which axis do you sum?",
        partial(softmax, axis=(-2, -1)),
    ),
    Mistake(
        "normalise",
        "you exponentiate, but do not divide by the sum",
        "What must the weights of one query add up to?",
        lambda scores, mask: np.exp(scores),
        lambda scores, mask: np.exp(scores - scores.max(axis=-1, keepdims=True)),
    ),
    Mistake(
        "normalise",
        "you divide the scores by their sum without exponentiating them first",
        "A score may be negative, a weight may not. What makes it positive?",
        lambda scores, mask: np.where(mask, scores, 0) / np.where(mask, scores, 0).sum(axis=-1, keepdims=True),
    ),
    Mistake(
        "normalise",
        "you use the scores themselves as weights: the softmax is missing",
        "What must the weights of one query add up to, and may they be negative?",
        lambda scores, mask: np.where(mask, scores, 0),
        lambda scores, mask: scores,
    ),
    Mistake(
        "normalise",
        "you take the softmax twice, which flattens the weights",
        "The weights are positive and add up to one after the first time. What is the second for?",
        lambda scores, mask: softmax(softmax(scores)),
        lambda scores, mask: softmax(np.where(mask, softmax(scores), -np.inf)),
    ),
    Mistake(
        "normalise",
        "you return the logarithms of the weights: this is log_softmax",
        "May a weight be negative?",
        lambda scores, mask: np.log(softmax(scores)),
    ),
    Mistake(
        "after",
        "you divide by the root of d_k after the softmax, where the weights add up to one already",
        "Scaling is to keep the softmax from saturating. Must it come before or after?",
        {"scale": lambda n: 1.0, "after": lambda weights, d_k: weights * d_k**-0.5},
        lambda weights, d_k: weights * d_k**-0.5,
    ),
]
TRANSPOSE = [
    Mistake(
        "after",
        "the right weights, but transposed: row n belongs to key n, not to query n",
        "What should a row of the weights add up to?",
        lambda weights, d_k: weights.T,
    ),
]
MASK = [
    Mistake(
        "hide",
        "your mask is transposed: it hides in rows what it should hide in columns",
        "mask[n, m] says whether query n may attend to key m. Which of the two counts the rows of your scores?",
        lambda scores, mask: np.where(mask.swapaxes(-1, -2), scores, -np.inf),
    ),
    Mistake(
        "hide",
        "your mask plays no part",
        "What weight should a key have where the mask is False?",
        _unhidden,
    ),
    Mistake(
        "hide",
        "you set the hidden scores to zero before the softmax, so hidden keys still get a weight",
        "exp(0) is 1. Which score has the exponential 0?",
        lambda scores, mask: np.where(mask, scores, 0),
    ),
    Mistake(
        "hide",
        "you hide keys after the softmax, so what is left no longer sums to one",
        "If you hide before the softmax, who shares out the weight of the hidden keys?",
        {"hide": _unhidden, "normalise": lambda scores, mask: np.where(mask, softmax(scores), 0)},
    ),
    Mistake(
        "hide",
        "your mask is inverted: you hide the keys that it allows",
        "True means: may attend. Which scores, then, should become minus infinity?",
        lambda scores, mask: np.where(mask, -np.inf, scores),
        lambda scores, mask: np.where(mask, -1e9, scores),
        {"hide": lambda scores, mask: np.where(mask, -np.inf, scores), "normalise": partial(softmax, guard=False)},
    ),
    Mistake(
        "hide",
        "you add the mask to the scores as a 1 or a 0, so hidden keys still get a weight",
        "What would you have to add to a score, to make its exponential 0?",
        lambda scores, mask: scores + mask,
    ),
    Mistake(
        "hide",
        "your result is not a number (nan) wherever a query may attend to anything",
        "Zero times infinity is nan. If you multiply the mask by infinity, could you choose with where instead?",
        lambda scores, mask: np.where(mask, np.nan, -np.inf),
        lambda scores, mask: np.full_like(scores, np.nan),
    ),
    Mistake(
        "normalise",
        "you divide 0 by 0: a query that may attend to nothing gets nan",
        "Such a query should give zeros. What can you divide by instead, when the sum is 0?",
        partial(softmax, guard=False),
    ),
    Mistake(
        "hide",
        "a query that may attend to nothing attends to everything: its hidden scores are very negative, but all equal",
        "The softmax sees only differences of scores. How can such a query give zeros instead?",
        lambda scores, mask: np.where(mask, scores, -1e9),
    ),
]
OVERFLOW = [
    Mistake(
        "normalise",
        "your exponential overflows: for large scores you divide infinity by infinity",
        "The softmax does not change when all scores of a row go down by the same amount. Which amount is safe?",
        lambda scores, mask: softmax(scores.astype(np.float32), subtract=False),
    ),
]
ROLES = [
    Mistake(
        "roles",
        "keys and values are swapped: you compare with the values and average the keys",
        "Which of the two is compared with the query, and which is passed on?",
        lambda q, k, v: (q, v, k),
    ),
    Mistake(
        "roles",
        "you average the keys; the values play no part",
        "The keys say where to look. What is passed on from there?",
        lambda q, k, v: (q, k, k),
    ),
    Mistake(
        "average",
        "the weights are transposed in the product with the values",
        "Output n is an average with the weights of query n. In which row or column do you find those?",
        lambda weights, values: weights.swapaxes(-1, -2) @ values,
    ),
]
OUTPUT = [
    Mistake(
        "average",
        "you return the weights: the values are still to be averaged with them",
        "A weight says how much of a value is taken. Of which values?",
        lambda weights, values: weights,
    ),
    Mistake(
        "average",
        "the right numbers, but transposed: your result has one column per query",
        "In this book tokens are rows. Which axis should count the queries?",
        lambda weights, values: (weights @ values).swapaxes(-1, -2),
    ),
]
