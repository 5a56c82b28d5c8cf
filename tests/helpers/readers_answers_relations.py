"""What readers may hand in for the exercises of the chapter `relations`, right and wrong."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

from plainformer.attention import relations


def smoothed(power=2, divide=lambda width: 2 * width**2, sign=-1, axis=1):
    """Kernel smoothing in loops, with what may go wrong in it."""

    def my_kernel_smooth(queries, keys, values, width):
        powers = np.zeros((len(queries), len(keys)))
        for n, query in enumerate(queries):
            for m, key in enumerate(keys):
                powers[n, m] = np.exp(sign * np.linalg.norm(query - key) ** power / divide(width))
        if axis is not None:
            powers = powers / powers.sum(axis=axis, keepdims=True)
        return powers @ values

    return my_kernel_smooth


def by_dot_products(queries, keys, values, width):
    powers = np.exp(queries @ keys.T / width**2)
    return powers / powers.sum(axis=1, keepdims=True) @ values


def gathered(arrives=lambda adjacency, m, n: adjacency[m, n], count=lambda adjacency, n: adjacency[:, n].sum()):
    """The mean of messages in loops."""

    def my_gather_messages(values, adjacency):
        found = np.zeros(values.shape)
        for n in range(len(values)):
            for m in range(len(values)):
                if arrives(adjacency, m, n):
                    found[n] += values[m]
            found[n] /= max(count(adjacency, n), 1)
        return found

    return my_gather_messages


SMOOTH = [
    (smoothed(power=1), "distance is not squared"),
    (by_dot_products, "scores are dot products"),
    (smoothed(divide=lambda width: 2 * width), "width is not squared"),
    (smoothed(divide=lambda width: 2 * width**4), "width is squared twice"),
    (smoothed(divide=lambda width: (2 * width**2) ** 2), "width is squared twice"),
    (smoothed(divide=lambda width: width**2), "factor two is missing"),
    (smoothed(divide=lambda width: 1 / (2 * width**2)), "multiply by the squared width"),
    (smoothed(sign=1), "minus sign is missing"),
    (smoothed(axis=None), "do not sum to one"),
    (smoothed(axis=0), "for each key, where"),
]
GATHER = [
    (
        gathered(lambda adjacency, m, n: adjacency[n, m], lambda adjacency, n: adjacency[n].sum()),
        "the wrong way round",
    ),
    (
        lambda values, adjacency: gathered()(values, adjacency | adjacency.T),
        "in both directions",
    ),
    (
        lambda values, adjacency: gathered()(values, adjacency | np.eye(len(values), dtype=bool)),
        "hears itself as well",
    ),
    (gathered(count=lambda adjacency, n: 1), "you add up"),
    (gathered(count=lambda adjacency, n: len(adjacency)), "the number of all nodes"),
    (gathered(count=lambda adjacency, n: adjacency[n].sum()), "edges that leave a node"),
]


def by_edges(values, adjacency):
    """Zero queries find all neighbours alike."""
    nothing = jnp.zeros((len(values), 1), values.dtype)
    return relations.pass_messages(nothing, nothing, jnp.asarray(values), adjacency)


RIGHT = [
    ("kernel_smooth", in_numpy(smoothed())),
    ("kernel_smooth", in_jax(relations.kernel_smooth, static_argnums=3)),
    ("gather_messages", in_numpy(gathered())),
    ("gather_messages", by_edges),
]
WRONG = [
    *(("kernel_smooth", in_numpy(function), words) for function, words in SMOOTH),
    *(("gather_messages", in_numpy(function), words) for function, words in GATHER),
]
