"""What readers may hand in for the exercise `delta_rule` of the chapter `modern`, right and wrong."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

from plainformer.attention import delta_rule, delta_step


def by_matrices(length=1.0, erase=1.0, write=1.0, whole=False, first="shrink", asks="now", reads="after"):
    """The matrix that the papers write, number by number, with what may go wrong in it."""

    def my_delta_rule(queries, keys, values, betas, factors):
        state, rows = np.zeros((keys.shape[1], values.shape[1])), []
        for n in range(len(keys)):
            key = keys[n] / np.sqrt((keys[n] ** 2).sum()) ** length
            beta, before = 1 if whole else betas[n], state
            state = state * factors[n] if first == "shrink" else state
            old = state
            said = key @ (old if asks == "now" else before)
            removed = beta**erase * said if erase is not None else 0
            state = old - np.outer(key, removed) + beta**write * np.outer(key, values[n])
            state = state * factors[n] if first == "write" else state
            rows.append(queries[n] @ (state if reads == "after" else old))
        return np.array(rows)

    return my_delta_rule


def by_steps(queries, keys, values, betas, factors):
    state, rows = jnp.zeros((keys.shape[1], values.shape[1])), []
    keys = keys / jnp.linalg.norm(keys, axis=-1, keepdims=True)
    for each in zip(queries, keys, values, betas, jnp.log(factors), strict=True):
        state, row = delta_step(state, *each)
        rows.append(row)
    return jnp.stack(rows)


def by_blocks(queries, keys, values, betas, factors):
    keys = keys / jnp.linalg.norm(keys, axis=-1, keepdims=True)
    return delta_rule(queries, keys, values, betas, jnp.log(factors), block_size=2)[0]


RULE = [
    (by_matrices(erase=None), "added to what the state says"),
    (by_matrices(whole=True), "beta is forgotten"),
    (by_matrices(erase=0.0), "multiplies the value alone"),
    (by_matrices(write=0.0), "what is taken away alone"),
    (by_matrices(first="write"), "shrinks after it was written"),
    (by_matrices(first="neither"), "never shrinks"),
    (by_matrices(asks="before"), "says before it shrinks"),
    (by_matrices(reads="before"), "reads before it writes"),
    (by_matrices(length=0.0), "not brought to a length of 1"),
]
RIGHT = [
    ("delta_rule", in_numpy(by_matrices())),
    ("delta_rule", in_jax(by_steps)),
    ("delta_rule", in_jax(by_blocks)),
]
WRONG = [("delta_rule", in_numpy(function), words) for function, words in RULE]
