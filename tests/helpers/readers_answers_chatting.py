"""Answers to the exercises of the chapter `chatting` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_numpy


def unpacked(turned=False, stride=False, least=True, middle=0, shift=1, step=np.multiply):
    """A reader who goes through the bytes one by one, rightly unless said otherwise."""

    def unpack(codes, size, low):
        lows = [int(each) % 16 for each in codes]
        highs = [int(each) // 16 * shift for each in codes]
        if stride:
            found = [part for pair in zip(lows, highs, strict=True) for part in pair]
        else:
            found = highs + lows if turned else lows + highs
        return np.array([step(each - middle, size) + (low if least else 0) for each in found], float)

    return unpack


UNPACKED = [
    (unpacked(stride=True), "side by side"),
    (unpacked(turned=True), "exchanged"),
    (unpacked(shift=16), "not divided by 16"),
    (unpacked(least=False), "forgot the least number"),
    (unpacked(least=False, middle=8), "count codes from -8"),
    (unpacked(step=np.divide), "divide by the step"),
]


def reordered(place=lambda row, width: row // 2 + row % 2 * (width // 2), heads=True, axis=0):
    """A reader who copies row by row, rightly unless said otherwise."""

    def reorder(stored, num_heads):
        rows = np.moveaxis(np.asarray(stored), axis, 0)
        width = len(rows) // (num_heads if heads else 1)
        found = np.zeros_like(rows)
        for row in range(len(rows)):
            start = row // width * width
            found[start + place(row - start, width)] = rows[row]
        return np.moveaxis(found, 0, axis)

    return reorder


def back(stored, num_heads):
    rows = np.asarray(stored).reshape(num_heads, 2, -1, stored.shape[1])
    return rows.swapaxes(1, 2).reshape(stored.shape)


def columns(stored, num_heads):
    return np.concatenate([stored[:, 0::2], stored[:, 1::2]], axis=1)


REORDERED = [
    (back, "the way back"),
    (reordered(heads=False), "all heads together"),
    (reordered(lambda row, width: row // 2 + (1 - row % 2) * (width // 2)), "odd rows come first"),
    (columns, "order of the columns"),
    (reordered(lambda row, width: row), "stay as the file has them"),
]


def told(before=(1,), after=(198,), end=(2, 198), last=("assistant",), closed=(), only=0, who=lambda role: role):
    """A reader who writes message by message, rightly unless said otherwise."""

    def tell(roles, texts, names):
        ids = []
        for role, text in list(zip(roles, texts, strict=True))[only:]:
            ids += [*before, *(names[who(role)] if who(role) else ()), *after, *text, *end]
        for role in last:
            ids += [*before, *names[role or roles[-1]], *after, *closed]
        return ids

    return tell


TOLD = [
    (told(last=()), "nothing says that the assistant"),
    (told(last=[None]), "has just spoken"),
    (told(closed=(2, 198)), "before it has said anything"),
    (told(end=()), "not closed"),
    (told(end=(2,)), "behind the token that ends a message"),
    (told(after=()), "behind the role"),
    (told(who=lambda role: None), "nothing says who speaks"),
    (told(who=lambda role: "user"), "said by the user"),
    (told(only=-1), "only the last message"),
]


def by_an_axis(stored, num_heads):
    pairs = stored.reshape(num_heads, -1, 2, stored.shape[1])
    return jnp.swapaxes(pairs, 1, 2).reshape(stored.shape)


RIGHT = [
    ("unpack_group", in_numpy(unpacked())),
    ("in_halves", in_numpy(reordered())),
    ("in_halves", by_an_axis),
    ("conversation", told()),
]
WRONG = [
    *(("unpack_group", in_numpy(function), words) for function, words in UNPACKED),
    *(("in_halves", in_numpy(function), words) for function, words in REORDERED),
    *(("conversation", function, words) for function, words in TOLD),
]
