"""Answers to the exercises of the chapter `self_attention` as readers would write them, right ones and wrong ones."""

import numpy as np
from exercise_checks import in_jax, in_numpy, softmax

import plainformer as pf


def shares(scores):
    return scores / scores.sum(axis=1, keepdims=True)


def scaled(q, k):
    return q @ k.T / q.shape[1] ** 0.5


def hidden(q, k, mask):
    return np.where(mask, scaled(q, k), -np.inf)


def weights(q, k, mask):
    """Right also for a query that may attend to nothing."""
    return np.where(mask.any(axis=1)[:, None], softmax(hidden(q, k, mask)), 0)


def weights_in_loops(q, k, mask):
    result = np.zeros((len(q), len(k)))
    for n in range(len(q)):
        allowed = [m for m in range(len(k)) if mask[n, m]]
        dots = {m: sum(a * b for a, b in zip(q[n], k[m], strict=True)) / len(q[n]) ** 0.5 for m in allowed}
        for m in allowed:
            result[n, m] = 1 / sum(np.exp(dots[other] - dots[m]) for other in allowed)
    return result


def masked_later(q, k, mask):
    return np.where(mask, softmax(scaled(q, k)), 0)


package_attend = in_jax(pf.attend)

RIGHT = [
    ("scores", in_numpy(lambda q, k: np.array([[np.dot(a, b) for b in k] for a in q]) / q.shape[1] ** 0.5)),
    ("scores", in_jax(pf.scaled_scores)),
    ("weights", in_numpy(weights)),
    ("weights", in_jax(pf.attention_weights)),
    ("attend", in_numpy(lambda q, k, v, mask: weights(q, k, mask) @ v)),
    ("attend", lambda queries, keys, values, mask=None, *, scale=None: package_attend(queries, keys, values, mask)),
    ("attend", package_attend),
]

SCORES = [
    (lambda q, k: q @ k.T, "not scaled"),
    (lambda q, k: q @ k.T * k.shape[1] ** 0.5, "multiply by the root"),
    (lambda q, k: q @ k.T / k.shape[1], r"divide by d_k \(or twice"),
    (lambda q, k: q @ k.T / len(q) ** 0.5, "root of the number of queries"),
    (lambda q, k: q @ k.T / k.shape[0] ** 0.5, "root of the number of keys"),
    (lambda q, k: k @ q.T / k.shape[1] ** 0.5, "scores are transposed"),
    (lambda q, k: np.array([[np.dot(a, b) for a in q] for b in k]) / q.shape[1] ** 0.5, "scores are transposed"),
    (lambda q, k: q @ q.T / q.shape[1] ** 0.5, "queries with one another"),
]
WEIGHTS = [
    (lambda q, k, mask: softmax(hidden(q, k, mask), axis=0), "over the queries, not over the keys"),
    (lambda q, k, mask: np.exp(hidden(q, k, mask)) / np.exp(hidden(q, k, mask)).sum(), "all queries and keys together"),
    (lambda q, k, mask: np.exp(hidden(q, k, mask)), "do not divide by the sum"),
    (lambda q, k, mask: np.where(mask, scaled(q, k), 0), "softmax is missing"),
    (lambda q, k, mask: shares(np.where(mask, scaled(q, k), 0)), "without exponentiating"),
    (lambda q, k, mask: softmax(scaled(q, k)), "mask plays no part"),
    (lambda q, k, mask: softmax(scaled(q, k) * mask), "to zero before the softmax"),
    (masked_later, "hide keys after"),
    (lambda q, k, mask: softmax(scaled(q, k)) * mask, "hide keys after"),
    (lambda q, k, mask: softmax(hidden(q, k, ~mask)), "mask is inverted"),
    (lambda q, k, mask: softmax(np.where(mask, -1e9, scaled(q, k))), "mask is inverted"),
    (lambda q, k, mask: softmax(scaled(q, k) + mask), "add the mask"),
    (lambda q, k, mask: softmax(scaled(q, k) + (1 - mask.astype(int)) * -np.inf), r"not a number \(nan\) wherever"),
    (lambda q, k, mask: softmax(hidden(q, k, mask)), "divide 0 by 0"),
    (lambda q, k, mask: softmax(np.where(mask, scaled(q, k), -1e9)), "attends to everything"),
    (lambda q, k, mask: softmax(scaled(q, k) - 1e9 * (1 - mask.astype(np.float32))), "attends to everything"),
    (
        lambda q, k, mask: np.exp(hidden(q, k, mask)) / np.maximum(np.exp(hidden(q, k, mask)).sum(1), 1e-9)[:, None],
        "overflows",
    ),
    (lambda q, k, mask: softmax(softmax(hidden(q, k, mask))), "softmax twice"),
    (lambda q, k, mask: softmax(np.where(mask, softmax(hidden(q, k, mask)), -np.inf)), "softmax twice"),
    (lambda q, k, mask: np.log(softmax(hidden(q, k, mask))), "logarithms of the weights"),
    (
        lambda q, k, mask: softmax(np.where(mask, q @ k.T, -np.inf)) / q.shape[1] ** 0.5,
        "root of d_k after the softmax",
    ),
    (lambda q, k, mask: softmax(hidden(q, k, mask)) / q.shape[1] ** 0.5, "root of d_k after the softmax"),
    (lambda q, k, mask: weights(q, k, mask.T), "mask is transposed"),
    (lambda q, k, mask: weights(q, k, mask).T, "right weights, but transposed"),
]
ATTEND = [
    (lambda q, k, v, mask: softmax(hidden(q, k, mask), axis=0) @ v, "over the queries, not over the keys"),
    (lambda q, k, v, mask: weights(q * q.shape[1] ** 0.5, k, mask) @ v, "not scaled"),
    (lambda q, k, v, mask: weights(q * (q.shape[1] / v.shape[1]) ** 0.5, k, mask) @ v, "values' width"),
    (lambda q, k, v, mask: weights_in_loops(k, q, mask) @ v, "scores are transposed"),
    (lambda q, k, v, mask: softmax(np.where(mask, scaled(k, q), -np.inf)) @ v, "scores are transposed"),
    (lambda q, k, v, mask: weights(q, k, mask).T @ v, "weights are transposed in the product"),
    (lambda q, k, v, mask: weights(q, v, mask) @ k, "keys and values are swapped"),
    (lambda q, k, v, mask: weights(q, k, mask) @ k, "values play no part"),
    (lambda q, k, v, mask: weights(q, k, ~mask) @ v, "mask is inverted"),
    (lambda q, k, v, mask: masked_later(q, k, mask) @ v, "hide keys after"),
    (lambda q, k, v, mask: softmax(hidden(q, k, mask)) @ v, "divide 0 by 0"),
    (lambda q, k, v, mask: weights(q, k, mask), "you return the weights"),
    (lambda q, k, v, mask: (weights(q, k, mask) @ v).T, "your result has one column per query"),
    (lambda q, k, v, mask: v.T @ weights(q, k, mask).T, "your result has one column per query"),
    (lambda q, k, v, mask: weights(q, k, mask.T) @ v, "mask is transposed"),
]
WRONG = [
    *(("scores", in_numpy(function), words) for function, words in SCORES),
    *(("weights", in_numpy(function), words) for function, words in WEIGHTS),
    *(("attend", in_numpy(function), words) for function, words in ATTEND),
]
