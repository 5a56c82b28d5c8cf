"""Answers to the exercises of chapters 02 and 03 as readers would write them, right ones and wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np


def softmax(scores, axis=1):
    exponentials = jnp.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def shares(scores):
    return scores / scores.sum(axis=1, keepdims=True)


def scaled(q, k):
    return q @ k.T / np.sqrt(q.shape[1])


def hidden(q, k, mask):
    return jnp.where(mask, scaled(q, k), -jnp.inf)


def weights(q, k, mask):
    """Right also for a query that may attend to nothing."""
    raw = jax.nn.softmax(hidden(q, k, mask), axis=1)
    return jnp.where(mask.any(axis=1)[:, None], raw, 0.0)


def weights_in_loops(q, k, mask):
    q, k, mask = np.asarray(q), np.asarray(k), np.asarray(mask)
    result = np.zeros((len(q), len(k)))
    for n in range(len(q)):
        allowed = [m for m in range(len(k)) if mask[n, m]]
        dots = {m: sum(a * b for a, b in zip(q[n], k[m], strict=True)) / len(q[n]) ** 0.5 for m in allowed}
        for m in allowed:
            result[n, m] = 1 / sum(np.exp(dots[other] - dots[m]) for other in allowed)
    return result


def heads(x, wq, wk, wv, scale=None, axis=-1):
    """The outputs of all heads, (heads, seq, d_v), by a reader who stays with NumPy."""
    q, k, v = np.matmul(x, wq), np.matmul(x, wk), np.matmul(x, wv)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    exponentials = np.exp(q @ k.transpose(0, 2, 1) * scale)
    return exponentials / exponentials.sum(axis=axis, keepdims=True) @ v


def mix(outputs, wo):
    return np.einsum("hnv,hvd->nd", outputs, wo)


def multi_head_with_first_weights(x, wq, wk, wv, wo):
    total = np.zeros(x.shape)
    for h in range(len(wq)):
        total += heads(x, wq[:1], wk[:1], wv[:1])[0] @ np.asarray(wo[h])
    return total


def shared_out_tokens(x, num_heads):
    return jnp.stack(jnp.split(x, num_heads, axis=0))


def masked_later(q, k, mask):
    return jnp.where(mask, softmax(scaled(q, k)), 0.0)


def mean_of_heads(x, wq, wk, wv, wo):
    return np.matmul(heads(x, wq, wk, wv), wo).mean(axis=0)


def last_head(x, wq, wk, wv, wo):
    for h in range(len(wq)):
        total = heads(x, wq[h : h + 1], wk[h : h + 1], wv[h : h + 1])[0] @ np.asarray(wo[h])
    return total


WRONG = [
    ("scores", lambda q, k: q @ k.T, "not scaled"),
    ("scores", lambda q, k: q @ k.T * np.sqrt(k.shape[1]), "multiply by the root"),
    ("scores", lambda q, k: q @ k.T / k.shape[1], r"divide by d_k \(or twice"),
    ("scores", lambda q, k: q @ k.T / np.sqrt(len(q)), "root of the number of queries"),
    ("scores", lambda q, k: q @ k.T / np.sqrt(k.shape[0]), "root of the number of keys"),
    ("scores", lambda q, k: k @ q.T / np.sqrt(k.shape[1]), "scores are transposed"),
    (
        "scores",
        lambda q, k: np.array([[np.dot(a, b) for a in q] for b in k]) / q.shape[1] ** 0.5,
        "scores are transposed",
    ),
    ("scores", lambda q, k: q @ q.T / np.sqrt(q.shape[1]), "queries with one another"),
    ("weights", lambda q, k, mask: softmax(hidden(q, k, mask), axis=0), "over the queries, not over the keys"),
    (
        "weights",
        lambda q, k, mask: jnp.exp(hidden(q, k, mask)) / jnp.exp(hidden(q, k, mask)).sum(),
        "all queries and keys together",
    ),
    ("weights", lambda q, k, mask: jnp.exp(hidden(q, k, mask)), "do not divide by the sum"),
    ("weights", lambda q, k, mask: jnp.where(mask, scaled(q, k), 0.0), "softmax is missing"),
    ("weights", lambda q, k, mask: shares(jnp.where(mask, scaled(q, k), 0.0)), "without exponentiating"),
    ("weights", lambda q, k, mask: softmax(scaled(q, k)), "mask plays no part"),
    ("weights", lambda q, k, mask: softmax(scaled(q, k) * mask.astype(jnp.float32)), "to zero before the softmax"),
    ("weights", masked_later, "after the softmax"),
    ("weights", lambda q, k, mask: np.asarray(softmax(scaled(q, k))) * np.asarray(mask), "after the softmax"),
    ("weights", lambda q, k, mask: softmax(hidden(q, k, ~mask)), "mask is inverted"),
    ("weights", lambda q, k, mask: softmax(jnp.where(mask, -1e9, scaled(q, k))), "mask is inverted"),
    ("weights", lambda q, k, mask: softmax(scaled(q, k) + mask.astype(jnp.float32)), "add the mask"),
    (
        "weights",
        lambda q, k, mask: softmax(scaled(q, k) + (1 - np.asarray(mask)) * -np.inf),
        r"not a number \(nan\) wherever",
    ),
    ("weights", lambda q, k, mask: softmax(hidden(q, k, mask)), "divide 0 by 0"),
    ("weights", lambda q, k, mask: softmax(jnp.where(mask, scaled(q, k), -1e9)), "attends to everything"),
    (
        "weights",
        lambda q, k, mask: softmax(scaled(q, k) - 1e9 * (1 - np.asarray(mask, np.float32))),
        "attends to everything",
    ),
    (
        "weights",
        lambda q, k, mask: jnp.exp(hidden(q, k, mask)) / jnp.maximum(jnp.exp(hidden(q, k, mask)).sum(1), 1e-9)[:, None],
        "overflows",
    ),
    ("attend", lambda q, k, v, mask: softmax(hidden(q, k, mask), axis=0) @ v, "over the queries, not over the keys"),
    ("attend", lambda q, k, v, mask: weights(q * np.sqrt(q.shape[1]), k, mask) @ v, "not scaled"),
    ("attend", lambda q, k, v, mask: weights(q * np.sqrt(q.shape[1] / v.shape[1]), k, mask) @ v, "values' width"),
    ("attend", lambda q, k, v, mask: weights_in_loops(k, q, mask) @ v, "your function raised IndexError|transposed"),
    ("attend", lambda q, k, v, mask: softmax(jnp.where(mask, scaled(k, q), -jnp.inf)) @ v, "scores are transposed"),
    ("attend", lambda q, k, v, mask: weights(q, k, mask).T @ v, "weights are transposed in the product"),
    ("attend", lambda q, k, v, mask: weights(q, v, mask) @ k, "keys and values are swapped"),
    ("attend", lambda q, k, v, mask: weights(q, k, mask) @ k, "values play no part"),
    ("attend", lambda q, k, v, mask: weights(q, k, ~mask) @ v, "mask is inverted"),
    ("attend", lambda q, k, v, mask: masked_later(q, k, mask) @ v, "after the softmax"),
    ("attend", lambda q, k, v, mask: softmax(hidden(q, k, mask)) @ v, "divide 0 by 0"),
    ("split_heads", lambda x, h: x.reshape(h, x.shape[0], -1), "in one go"),
    ("split_heads", lambda x, h: jnp.stack(jnp.split(x, h, axis=1), axis=1), "still inside the tokens"),
    ("split_heads", lambda x, h: jnp.stack([x[:, i::h] for i in range(h)]), "take turns"),
    ("split_heads", lambda x, h: [row.T for row in jnp.split(x, h, axis=1)], "each head is transposed"),
    ("split_heads", lambda x, h: jnp.stack(jnp.split(x, x.shape[1] // h, axis=1)), "num_heads wide"),
    ("split_heads", shared_out_tokens, "share out the tokens"),
    ("multi_head", lambda x, q, k, v, o: mix(heads(x, q, k, v, scale=1.0), o), "not scaled"),
    ("multi_head", lambda x, q, k, v, o: mix(heads(x, q, k, v, scale=x.shape[1] ** -0.5), o), "root of the full width"),
    ("multi_head", lambda x, q, k, v, o: mix(heads(x, q, k, v, scale=len(x) ** -0.5), o), "number of tokens"),
    ("multi_head", lambda x, q, k, v, o: mix(heads(x, q, k, v, axis=1), o), "over the queries, not over the keys"),
    ("multi_head", lambda x, q, k, v, o: mix(heads(x, q, k, v, axis=0), o), "softmax runs across the heads"),
    ("multi_head", lambda x, q, k, v, o: mix(heads(x, k, q, v), o), "query and key weights are swapped"),
    ("multi_head", lambda x, q, k, v, o: mix(heads(x, q, q, v), o), "queries and keys come from the same"),
    ("multi_head", multi_head_with_first_weights, "weights of head 0"),
    ("multi_head", mean_of_heads, "average the heads"),
    ("multi_head", lambda x, q, k, v, o: np.matmul(heads(x, q, k, v), o), "one output for each head"),
    ("multi_head", lambda x, q, k, v, o: np.concatenate(list(heads(x, q, k, v)), axis=1), "forgot W_O"),
    ("multi_head", lambda x, q, k, v, o: np.concatenate(heads(x, q, k, v), axis=0), "forgot W_O"),
    (
        "multi_head",
        lambda x, q, k, v, o: heads(x, q, k, v).reshape(len(x), -1) @ np.asarray(o).reshape(-1, x.shape[1]),
        "by a reshape alone",
    ),
    (
        "multi_head",
        lambda x, q, k, v, o: (
            np.stack(list(heads(x, q, k, v)), axis=2).reshape(len(x), -1) @ np.concatenate(list(np.asarray(o)))
        ),
        "not in the same order",
    ),
    ("weights", lambda q, k, mask: softmax(softmax(hidden(q, k, mask))), "softmax twice"),
    (
        "weights",
        lambda q, k, mask: softmax(jnp.where(mask, softmax(hidden(q, k, mask)), -jnp.inf)),
        "softmax twice",
    ),
    ("weights", lambda q, k, mask: jax.nn.log_softmax(hidden(q, k, mask), axis=1), "logarithms of the weights"),
    (
        "weights",
        lambda q, k, mask: softmax(jnp.where(mask, q @ k.T, -jnp.inf)) / np.sqrt(q.shape[1]),
        "root of d_k after the softmax",
    ),
    ("weights", lambda q, k, mask: softmax(hidden(q, k, mask)) / np.sqrt(q.shape[1]), "root of d_k after the softmax"),
    ("weights", lambda q, k, mask: weights(q, k, mask.T), "mask is transposed"),
    ("weights", lambda q, k, mask: weights(q, k, mask).T, "right weights, but transposed"),
    ("attend", lambda q, k, v, mask: weights(q, k, mask), "you return the weights"),
    ("attend", lambda q, k, v, mask: (weights(q, k, mask) @ v).T, "your result has one column per query"),
    ("attend", lambda q, k, v, mask: v.T @ weights(q, k, mask).T, "your result has one column per query"),
    ("attend", lambda q, k, v, mask: weights(q, k, mask.T) @ v, "mask is transposed"),
    ("multi_head", last_head, "contribution of a single head"),
    ("multi_head", lambda x, q, k, v, o: sum(heads(x, q, k, v)) @ sum(np.asarray(o)), "add the heads before W_O"),
    ("multi_head", lambda x, q, k, v, o: sum(heads(x, q, k, v)) @ o[0], "add the heads before W_O"),
]
