"""Answers to the exercise `sink_weights` of the chapter `modern` as readers would write them, right ones and wrong."""

import jax
import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy, softmax


def in_one_row(scores, sinks):
    """The sink as one more column, which is dropped after the softmax."""
    column = np.broadcast_to(sinks[:, None, None], (*scores.shape[:-1], 1))
    return softmax(np.concatenate([scores, column], axis=-1))[..., :-1]


def by_powers(
    scores, sinks, lost=lambda sinks: np.exp(sinks)[:, None, None], on_top=False, axis=-1, off=lambda scores: 0.0
):
    """The fraction as the equation has it, of a reader who takes some step otherwise."""
    powers = np.exp(scores - off(scores))
    more = lost(sinks)
    return (powers + more * on_top) / (powers.sum(axis=axis, keepdims=True) + more)


def with_the_largest_score_off(scores, sinks):
    return by_powers(scores, sinks, off=lambda scores: scores.max(axis=-1, keepdims=True))


def in_compiled_jax(scores, sinks):
    total = jax.nn.logsumexp(scores, axis=-1, keepdims=True)
    return jnp.exp(scores - jnp.logaddexp(total, sinks[:, None, None]))


RIGHT = [("sink_weights", in_numpy(in_one_row)), ("sink_weights", in_jax(in_compiled_jax))]
WRONG = [
    ("sink_weights", in_numpy(lambda scores, sinks: softmax(scores + sinks[:, None, None])), "plays no part"),
    ("sink_weights", in_numpy(lambda scores, sinks: by_powers(scores, sinks, on_top=True)), "numerators"),
    (
        "sink_weights",
        in_numpy(lambda scores, sinks: by_powers(scores, sinks, lambda sinks: sinks[:, None, None])),
        "without the exponential",
    ),
    ("sink_weights", in_numpy(with_the_largest_score_off), "not off the sink"),
    ("sink_weights", in_numpy(lambda s, sinks: by_powers(s, sinks, lambda sinks: np.exp(sinks[0]))), "one sink"),
    ("sink_weights", in_numpy(lambda s, sinks: by_powers(s, sinks, lambda sinks: 1.0)), "add one"),
    (
        "sink_weights",
        in_numpy(lambda scores, sinks: softmax(scores) / (1 + np.exp(sinks)[:, None, None])),
        "normalise first",
    ),
    ("sink_weights", in_numpy(lambda scores, sinks: by_powers(scores, sinks, axis=-2)), "over the queries"),
    ("sink_weights", in_numpy(by_powers), "for large scores"),
]
