"""What readers may hand in for the exercise of the chapter `deep_stacks`, right and wrong."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def in_loops(power=2, root=True, axis=0):
    """The spread in loops, with what may go wrong in it."""

    def size(rows):
        total = sum(abs(number) ** power for row in rows for number in row)
        return total**0.5 if root else total

    def my_spread(x):
        mean = x.mean(axis=axis, keepdims=True)
        return np.asarray(size(x - mean) / size(x))

    return my_spread


def by_the_mean_token(x):
    mean = x.mean(axis=0)
    return jnp.linalg.norm(x - mean) / jnp.linalg.norm(mean)


def always_one(x):
    left = x - x.mean(axis=0)
    return np.linalg.norm(left) / np.linalg.norm(left)


def by_singular_values(x):
    return jnp.linalg.norm(x - x.mean(axis=0), 2) / jnp.linalg.norm(x, 2)


RIGHT = [
    ("spread", in_numpy(in_loops())),
    ("spread", in_jax(lambda x: jnp.linalg.norm(x - x.mean(axis=0)) / jnp.linalg.norm(x))),
]
WRONG = [
    ("spread", in_numpy(in_loops(axis=1)), "each token over its features"),
    ("spread", in_numpy(in_loops(axis=None)), "one number, the mean of the whole matrix"),
    ("spread", in_jax(by_the_mean_token), "the size of the mean token"),
    ("spread", in_numpy(always_one), "always 1"),
    ("spread", in_numpy(in_loops(root=False)), "forget the root"),
    ("spread", in_numpy(in_loops(power=1, root=False)), "absolute values"),
    ("spread", in_jax(by_singular_values), "largest singular value"),
]
