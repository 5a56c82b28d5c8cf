"""Answers to the exercise on a cache of few bits as readers would write them, right and wrong."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def in_loops(last=lambda bits: 2**bits - 1, back=lambda code, step, low: low + code * step, whole=False):
    """The rounding of a reader who goes from group to group, and takes some step otherwise."""

    def rounded(numbers, bits, group):
        found = np.array(numbers, float)
        size = len(numbers) if whole else group
        for channel in range(numbers.shape[1]):
            for start in range(0, len(numbers), size):
                part = np.asarray(numbers[start : start + size, channel], float)
                low, step = part.min(), (part.max() - part.min()) / last(bits)
                found[start : start + size, channel] = back(np.rint((part - low) / (step or 1.0)), step, low)
        return found

    return rounded


def by_token(numbers, bits, group):
    tokens, channels = numbers.shape
    pieces = numbers.reshape(tokens, channels // group, group)
    low, high = pieces.min(2, keepdims=True), pieces.max(2, keepdims=True)
    step = (high - low) / (2**bits - 1)
    return (low + step * np.rint((pieces - low) / np.where(step > 0, step, 1))).reshape(tokens, channels)


def in_one(numbers, bits, group):
    low, step = numbers.min(), (numbers.max() - numbers.min()) / (2**bits - 1)
    return low + step * np.rint((numbers - low) / step)


def symmetric(numbers, bits, group):
    """A reader who does as with weights of eight bits."""
    groups = numbers.reshape(-1, group, numbers.shape[1])
    step = np.abs(groups).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    return (np.rint(groups / np.where(step == 0, 1, step)) * step).reshape(numbers.shape)


def at_once(numbers, bits, group):
    """A reader who cuts the axis of tokens in two."""
    tokens, channels = numbers.shape
    groups = numbers.reshape(tokens // group, group, channels)
    low, high = groups.min(axis=1, keepdims=True), groups.max(axis=1, keepdims=True)
    step = (high - low) / (2**bits - 1)
    codes = jnp.round((groups - low) / jnp.where(step == 0, 1, step))
    return (low + codes * step).reshape(tokens, channels)


RIGHT = [("round_by_groups", in_numpy(in_loops())), ("round_by_groups", in_jax(at_once, static_argnums=(1, 2)))]
WRONG = [
    ("round_by_groups", in_numpy(by_token), "pieces of a token"),
    ("round_by_groups", in_numpy(in_loops(whole=True)), "each channel is one group"),
    ("round_by_groups", in_numpy(in_one), "all groups share one step"),
    ("round_by_groups", in_numpy(in_loops(last=lambda bits: 2**bits)), "there is one fewer"),
    ("round_by_groups", in_numpy(symmetric), "minus the largest size"),
    ("round_by_groups", in_numpy(in_loops(back=lambda code, step, low: code * step)), "not added again"),
    ("round_by_groups", in_numpy(in_loops(back=lambda code, step, low: code)), "return the codes"),
]
