"""Answers to the exercise of the chapter `serving` on long texts as readers would write them, right and wrong."""

import math

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def parts_by(turn=2 * math.pi, text=lambda trained_len, factor: trained_len, limit=None, slow=None, flip=False):
    """The speeds of a reader who takes some step otherwise."""

    def speeds_of(speeds, factor, slow_turns, fast_turns, trained_len):
        turns = speeds * text(trained_len, factor) / turn
        low, high = (fast_turns, slow_turns) if flip else (slow_turns, fast_turns)
        passed = (turns - low) / (high - low)
        passed = (limit or (lambda share: np.minimum(np.maximum(share, 0), 1)))(passed)
        return (slow or (lambda speeds, factor: speeds / factor))(speeds, factor) * (1 - passed) + speeds * passed

    return speeds_of


def parts_in_jax(speeds, factor, slow_turns, fast_turns, trained_len):
    turns = trained_len * speeds / 2 / jnp.pi
    slowness = jnp.clip((fast_turns - turns) / (fast_turns - slow_turns), 0, 1)
    return speeds * (1 - slowness * (1 - 1 / factor))


PARTS = [
    (parts_by(turn=1.0), "count radians"),
    (parts_by(text=lambda trained_len, factor: trained_len * factor), "turns in the longer text"),
    (parts_by(limit=lambda share: share), "no bounds"),
    (parts_by(flip=True), "turned round"),
    (parts_by(limit=lambda share: np.where(share > 1 / 2, 1, 0)), "no passage"),
    (parts_by(limit=np.zeros_like), "all pairs become slower"),
    (parts_by(slow=np.multiply), "multiply by the factor"),
]
RIGHT = [("by_parts", in_numpy(parts_by())), ("by_parts", in_jax(parts_in_jax))]
WRONG = [("by_parts", in_numpy(function), words) for function, words in PARTS]
