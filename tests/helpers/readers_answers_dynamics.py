"""Answers to the exercises of the chapter `dynamics` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy, softmax

from plainformer.models import dynamics


def solved(sign=1):
    def transform(scores):
        identity = np.identity(scores.shape[0])
        return np.linalg.solve(identity + sign * scores, identity - sign * scores)

    return transform


def stepped(may_read=lambda i, j: i < j, tanh=np.tanh, bias_inside=1.0, bias_outside=0.0, skip=1.0):
    """Number by number, rightly unless said otherwise."""

    def step(x, matrix, bias):
        found = np.zeros_like(x)
        for n, j in np.ndindex(x.shape):
            heard = sum(x[n, i] * matrix[i, j] for i in range(len(bias)) if may_read(i, j))
            found[n, j] = skip * x[n, j] + tanh(heard + bias_inside * bias[j]) + bias_outside * bias[j]
        return found

    return step


def transposed(x, matrix, bias):
    return x + np.tanh(x @ (matrix * (np.arange(len(bias))[:, None] < np.arange(len(bias)))).T + bias)


RIGHT = [
    ("cayley", in_numpy(solved())),
    ("cayley", in_jax(dynamics.cayley)),
    ("triangular_step", in_numpy(stepped())),
    ("triangular_step", in_jax(lambda x, matrix, bias: x + jnp.tanh(x @ jnp.triu(matrix, 1) + bias))),
]
CAYLEY = [
    (solved(-1), "signs are swapped"),
    (lambda s: solved()(s).T, "signs are swapped"),
    (lambda s: (np.eye(len(s)) - s) @ (np.eye(len(s)) + s), "neither is inverted"),
    (lambda s: (np.eye(len(s)) - s) / (np.eye(len(s)) + s), "number by number"),
    (lambda s: np.eye(len(s)) - s, "one factor alone"),
    (lambda s: np.linalg.inv(np.eye(len(s)) + s), "one factor alone"),
    (lambda s: softmax(s), "you take a softmax"),
]
STEP = [
    (stepped(may_read=lambda i, j: i <= j), "diagonal stays"),
    (stepped(may_read=lambda i, j: True), "the whole matrix"),
    (stepped(may_read=lambda i, j: i > j), "below the diagonal"),
    (transposed, "transpose the matrix"),
    (stepped(skip=0.0), "leave out the row itself"),
    (stepped(tanh=lambda y: y), "no tanh"),
    (stepped(bias_inside=0.0), "forgot the bias"),
    (stepped(bias_inside=0.0, bias_outside=1.0), "bias after tanh"),
]
WRONG = [
    *(("cayley", in_numpy(function), words) for function, words in CAYLEY),
    *(("triangular_step", in_numpy(function), words) for function, words in STEP),
]
