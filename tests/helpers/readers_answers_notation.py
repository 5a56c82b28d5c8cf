"""Answers to the exercises of the chapter `notation` as readers would write them, right ones and wrong ones."""

import jax
import numpy as np
from exercise_checks import in_jax, in_numpy, softmax

import plainformer as pf


def attend_columns(axis=0, scale=lambda q, k: len(q) ** -0.5, score=lambda q, k: k.T @ q):
    """Attention of a reader who keeps tokens as columns, rightly unless said otherwise."""
    return lambda q, k, v: v @ softmax(score(q, k) * scale(q, k), axis)


def attend_rows(q, k, v):
    return softmax(q @ k.T / q.shape[1] ** 0.5) @ v


RIGHT = [
    ("attend_columns", in_jax(lambda q, k, v: pf.attend(q.T, k.T, v.T).T)),
    ("attend_columns", in_numpy(attend_columns())),
    ("linear_columns", in_jax(jax.vmap(lambda x, stored, bias: stored @ x + bias, (1, None, None), 1))),
    ("linear_columns", in_numpy(lambda x, stored, bias: (x.T @ stored.T + bias).T)),
    ("linear_columns", in_numpy(lambda x, stored, bias: np.stack([stored @ token + bias for token in x.T], axis=1))),
]
ATTEND = [
    (attend_columns(scale=lambda q, k: 1), "not scaled"),
    (attend_columns(scale=lambda q, k: len(q) ** 0.5), "multiply by the root"),
    (attend_columns(scale=lambda q, k: 1 / len(q)), "divide by d_k"),
    (attend_columns(scale=lambda q, k: q.shape[1] ** -0.5), "root of the number of queries"),
    (attend_columns(scale=lambda q, k: k.shape[1] ** -0.5), "root of the number of keys"),
    (attend_columns(axis=-1), "over the queries: the softmax runs along rows"),
    (attend_columns(axis=(0, 1)), "all queries and keys together"),
    (attend_columns(score=lambda q, k: q.T @ k), "scores are transposed"),
    (lambda q, k, v: v @ softmax(k.T @ q / len(q) ** 0.5, axis=0).T, "weights are transposed in the product"),
    (attend_rows, "formula for rows as it stands"),
    (lambda q, k, v: attend_rows(q.T, k.T, v.T), "one row per query; here tokens are columns"),
]
LINEAR = [
    (lambda x, stored, bias: stored @ x + bias, "bias runs along the tokens"),
    (lambda x, stored, bias: stored @ x, "forgot the bias"),
    (lambda x, stored, bias: stored.T @ x + bias[:, None], "transpose the stored matrix"),
    (lambda x, stored, bias: x @ stored.T + bias[:, None], "multiply from the right"),
    (lambda x, stored, bias: x @ stored + bias[:, None], "multiply from the right"),
    (lambda x, stored, bias: x.T @ stored.T + bias, "here tokens are columns"),
]
WRONG = [
    *(("attend_columns", in_numpy(function), words) for function, words in ATTEND),
    *(("linear_columns", in_numpy(function), words) for function, words in LINEAR),
]
