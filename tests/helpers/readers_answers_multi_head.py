"""Answers to the exercises of the chapter `multi_head` as readers would write them, right ones and wrong ones."""

import numpy as np
from exercise_checks import in_jax, in_numpy

import plainformer as pf


def heads(x, wq, wk, wv, scale=None, axis=-1):
    """The outputs of all heads, (heads, seq, d_v)."""
    q, k, v = x @ wq, x @ wk, x @ wv
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    exponentials = np.exp(q @ k.transpose(0, 2, 1) * scale)
    return exponentials / exponentials.sum(axis=axis, keepdims=True) @ v


def mix(outputs, wo):
    return np.einsum("hnv,hvd->nd", outputs, wo)


def with_first_weights(x, wq, wk, wv, wo):
    total = np.zeros(x.shape)
    for h in range(len(wq)):
        total += heads(x, wq[:1], wk[:1], wv[:1])[0] @ wo[h]
    return total


def last_head(x, wq, wk, wv, wo):
    for h in range(len(wq)):
        total = heads(x, wq[h : h + 1], wk[h : h + 1], wv[h : h + 1])[0] @ wo[h]
    return total


RIGHT = [
    ("split_heads", in_numpy(lambda x, h: np.split(x, h, axis=1))),
    ("split_heads", in_jax(pf.split_heads, static_argnums=1)),
    ("multi_head", in_numpy(lambda x, q, k, v, o: mix(heads(x, q, k, v), o))),
    ("multi_head", in_jax(pf.multi_head_concat)),
]

SPLIT_HEADS = [
    (lambda x, h: x.reshape(h, x.shape[0], -1), "in one go"),
    (lambda x, h: np.stack(np.split(x, h, axis=1), axis=1), "still inside the tokens"),
    (lambda x, h: np.stack([x[:, i::h] for i in range(h)]), "take turns"),
    (lambda x, h: [row.T for row in np.split(x, h, axis=1)], "each head is transposed"),
    (lambda x, h: np.stack(np.split(x, x.shape[1] // h, axis=1)), "num_heads wide"),
    (lambda x, h: np.stack(np.split(x, h, axis=0)), "share out the tokens"),
]
MULTI_HEAD = [
    (lambda x, q, k, v, o: mix(heads(x, q, k, v, scale=1.0), o), "not scaled"),
    (lambda x, q, k, v, o: mix(heads(x, q, k, v, scale=x.shape[1] ** -0.5), o), "root of the full width"),
    (lambda x, q, k, v, o: mix(heads(x, q, k, v, scale=len(x) ** -0.5), o), "number of tokens"),
    (lambda x, q, k, v, o: mix(heads(x, q, k, v, axis=1), o), "over the queries, not over the keys"),
    (lambda x, q, k, v, o: mix(heads(x, q, k, v, axis=0), o), "softmax runs across the heads"),
    (lambda x, q, k, v, o: mix(heads(x, k, q, v), o), "query and key weights are swapped"),
    (lambda x, q, k, v, o: mix(heads(x, q, q, v), o), "queries and keys come from the same"),
    (with_first_weights, "weights of head 0"),
    (lambda x, q, k, v, o: (heads(x, q, k, v) @ o).mean(axis=0), "average the heads"),
    (lambda x, q, k, v, o: heads(x, q, k, v) @ o, "one output for each head"),
    (lambda x, q, k, v, o: np.concatenate(list(heads(x, q, k, v)), axis=1), "you forgot W"),
    (lambda x, q, k, v, o: np.concatenate(heads(x, q, k, v), axis=0), "you forgot W"),
    (lambda x, q, k, v, o: heads(x, q, k, v).reshape(len(x), -1) @ o.reshape(-1, x.shape[1]), "by a reshape alone"),
    (
        lambda x, q, k, v, o: np.stack(list(heads(x, q, k, v)), axis=2).reshape(len(x), -1) @ np.concatenate(list(o)),
        "not in the same order",
    ),
    (last_head, "contribution of a single head"),
    (lambda x, q, k, v, o: sum(heads(x, q, k, v)) @ sum(o), "add the heads before"),
    (lambda x, q, k, v, o: sum(heads(x, q, k, v)) @ o[0], "add the heads before"),
]
WRONG = [
    *(("split_heads", in_numpy(function), words) for function, words in SPLIT_HEADS),
    *(("multi_head", in_numpy(function), words) for function, words in MULTI_HEAD),
]
