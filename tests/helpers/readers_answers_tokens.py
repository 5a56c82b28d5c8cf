"""Right and wrong answers to the exercises of the chapters `tokens` and `subwords`, as readers would write them."""

from functools import partial
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

from plainformer.tokens.merges import byte_alphabet, merge_pair, pre_tokenise


def byte_ids(piece, encoder):
    return [encoder.vocabulary[byte_alphabet()[byte]] for byte in piece.encode()]


def character_ids(piece, encoder):
    return [encoder.vocabulary[byte_alphabet()[ord(character)]] for character in piece]


def rules(encoder):
    number = encoder.vocabulary
    return [((number[a], number[b]), number[a + b]) for a, b in encoder.merges]


def in_order(ids, encoder):
    for pair, new in rules(encoder):
        ids = merge_pair(ids, pair, new)
    return ids


def backwards(ids, encoder):
    for pair, new in reversed(rules(encoder)):
        ids = merge_pair(ids, pair, new)
    return ids


def first_only(ids, encoder):
    for pair, new in rules(encoder):
        for n, found in enumerate(pairwise(ids)):
            if found == pair:
                ids = [*ids[:n], new, *ids[n + 2 :]]
                break
    return ids


def leftmost(ids, encoder):
    table, n = dict(rules(encoder)), 0
    while n + 1 < len(ids):
        if (ids[n], ids[n + 1]) in table:
            ids = [*ids[:n], table[ids[n], ids[n + 1]], *ids[n + 2 :]]
            n = 0
        else:
            n += 1
    return ids


def from_the_right(ids, encoder):
    for pair, new in rules(encoder):
        n = len(ids) - 2
        while n >= 0:
            if (ids[n], ids[n + 1]) == pair:
                ids = [*ids[:n], new, *ids[n + 2 :]]
                n -= 1
            n -= 1
    return ids


def one_merge(ids, encoder):
    for pair, new in rules(encoder):
        if pair in pairwise(ids):
            return merge_pair(ids, pair, new)
    return ids


def longest_token(ids, encoder):
    data, ids = b"".join(encoder.tokens[n] for n in ids), []
    while data:
        token = max((token for token in encoder.tokens if data.startswith(token)), key=len)
        ids, data = [*ids, encoder.tokens.index(token)], data[len(token) :]
    return ids


def encode(merge=in_order, spell=byte_ids, cut=pre_tokenise):
    return lambda text, encoder: [n for piece in cut(text) for n in merge(spell(piece, encoder), encoder)]


def slices(starts, length=lambda length: length):
    """Windows as slices from these starts."""

    def windows(series, size, stride):
        return np.stack([series[n : n + length(size)] for n in starts(len(series), size, stride)])

    return windows


def whole_windows(total, length, stride):
    return range(0, total - length + 1, stride)


@partial(in_jax, static_argnums=(1, 2))
def windows_by_index(series, length, stride):
    """JAX takes the last number for every index beyond the end."""
    return series[jnp.arange(0, len(series), stride)[:, None] + jnp.arange(length)[None]]


def padded_windows(series, length, stride):
    return slices(lambda total, length, stride: range(0, len(series), stride))(
        np.concatenate([series, np.zeros(length)]), length, stride
    )


def dilated(series, length, stride):
    starts = range(len(series) - (length - 1) * stride)
    return [[series[n + stride * i] for i in range(length)] for n in starts]


def pairs(shift=1, spare=1, step=lambda length: length):
    """Inputs and targets as slices; `spare` ids are left at the end."""

    def cut(ids, length):
        starts = range(0, len(ids) - length + 1 - spare, step(length))
        return tuple(np.stack([ids[n + k : n + k + length] for n in starts]) for k in (0, shift))

    return cut


def pairs_by_reshape(ids, length):
    n = (len(ids) - 1) // length * length
    return ids[:n].reshape(-1, length), ids[1 : n + 1].reshape(-1, length)


def floor_of_all(ids, length):
    n = len(ids) // length
    return ids[: n * length].reshape(n, length), ids[1 : n * length + 1].reshape(n, length)


def rolled(axis):
    def cut(ids, length):
        inputs, _ = pairs_by_reshape(ids, length)
        return inputs, np.roll(inputs, -1, axis)

    return cut


def rolled_as_a_whole(ids, length):
    n = len(ids) // length * length
    return ids[:n].reshape(-1, length), np.roll(ids, -1)[:n].reshape(-1, length)


@partial(in_jax, static_argnums=1)
def beyond_the_end(ids, length):
    where = jnp.arange(len(ids) // length)[:, None] * length + jnp.arange(length)[None]
    return ids[where], ids[where + 1]


RIGHT = [
    ("encode", encode()),
    ("encode", lambda text, encoder: encoder.encode(text)),
    ("windows", in_numpy(slices(whole_windows))),
    ("windows", in_numpy(lambda x, length, stride: np.lib.stride_tricks.sliding_window_view(x, length)[::stride])),
    ("pairs", in_numpy(pairs_by_reshape)),
    ("pairs", in_jax(pairs_by_reshape, static_argnums=1)),
]
ENCODE = [
    (encode(leftmost), "whatever pair stands furthest left"),
    (encode(longest_token), "longest token that fits"),
    (encode(backwards), "from the last learned to the first"),
    (encode(first_only), "only the first occurrence"),
    (encode(from_the_right), "merge from the right"),
    (encode(one_merge), "stop after one merge"),
    (encode(lambda ids, encoder: ids), "no merge is applied"),
    (encode(spell=character_ids), "characters where bytes are expected"),
    (encode(spell=lambda piece, encoder: [encoder.vocabulary[c] for c in piece]), "characters where bytes"),
    (encode(spell=lambda piece, encoder: piece.encode()), "each byte itself as its id"),
    (encode(cut=lambda text: [text]), "merge across the pieces"),
    (encode(cut=str.split), "the spaces are lost"),
]
WINDOWS = [
    (slices(lambda total, length, stride: range(0, total - length, stride)), "last window is missing"),
    (windows_by_index, "run beyond the end"),
    (padded_windows, "run beyond the end"),
    (lambda x, length, stride: x[: len(x) // length * length].reshape(-1, length), "windows side by side"),
    (slices(lambda total, length, stride: range(total - length + 1)), "windows start at every number"),
    (slices(lambda total, length, stride: range(stride, total - length + 1, stride)), "first window is miss"),
    (lambda x, length, stride: slices(whole_windows)(x, stride, length), "length and stride are swapped"),
    (
        slices(lambda total, length, stride: range(0, total - length, stride), lambda length: length + 1),
        "one number too long",
    ),
    (dilated, "the stride is between the numbers inside"),
    (lambda x, length, stride: slices(whole_windows)(x, length, stride).T, "the windows are columns"),
]
PAIRS = [
    (pairs(shift=0), "targets are the inputs themselves"),
    (pairs(shift=0, spare=0), "targets are the inputs themselves"),
    (pairs(shift=2, spare=2), "shifted by two"),
    (lambda ids, length: pairs()(ids, length)[::-1], "inputs and targets are swapped"),
    (rolled(axis=1), "the shift goes round inside the row"),
    (rolled(axis=0), "along the wrong axis"),
    (beyond_the_end, "last row needs ids beyond the end"),
    (floor_of_all, "last row needs ids beyond the end"),
    (rolled_as_a_whole, "last row needs ids beyond the end"),
    (pairs(spare=2), "last row is missing"),
    (pairs(step=lambda length: 1), "rows start at every id"),
    (pairs(step=lambda length: length + 1), r"rows are length \+ 1 apart"),
    (lambda ids, length: tuple(each.T for each in pairs()(ids, length)), "axes are mixed up"),
]
WRONG = [
    *(("encode", function, words) for function, words in ENCODE),
    *(("windows", in_numpy(function), words) for function, words in WINDOWS),
    *(("pairs", in_numpy(function), words) for function, words in PAIRS),
]
