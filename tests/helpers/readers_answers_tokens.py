"""Answers to the exercises of chapters 00 and 01 as readers would write them, right ones and wrong ones."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf


def attend_columns(axis=0, width=lambda q, k, v: k.shape[0]):
    def attend(q, k, v):
        return v @ jax.nn.softmax(k.T @ q / np.sqrt(width(q, k, v)), axis=axis)

    return attend


def byte_ids(piece, encoder):
    return [encoder.vocabulary[pf.byte_alphabet()[byte]] for byte in piece.encode()]


def character_ids(piece, encoder):
    return [encoder.vocabulary[pf.byte_alphabet()[ord(character)]] for character in piece]


def rules(encoder):
    number = encoder.vocabulary
    return [((number[a], number[b]), number[a + b]) for a, b in encoder.merges]


def in_order(ids, encoder):
    for pair, new in rules(encoder):
        ids = pf.merge_pair(ids, pair, new)
    return ids


def backwards(ids, encoder):
    for pair, new in reversed(rules(encoder)):
        ids = pf.merge_pair(ids, pair, new)
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
            return pf.merge_pair(ids, pair, new)
    return ids


def longest_token(ids, encoder):
    data, ids = b"".join(encoder.tokens[n] for n in ids), []
    while data:
        token = max((token for token in encoder.tokens if data.startswith(token)), key=len)
        ids, data = [*ids, encoder.tokens.index(token)], data[len(token) :]
    return ids


def encode(merge=in_order, spell=byte_ids, cut=pf.pre_tokenise):
    return lambda text, encoder: [n for piece in cut(text) for n in merge(spell(piece, encoder), encoder)]


def slices(starts, length=lambda length: length):
    """Windows as slices from these starts."""

    def windows(series, size, stride):
        return np.stack([series[n : n + length(size)] for n in starts(len(series), size, stride)])

    return windows


def whole_windows(total, length, stride):
    return range(0, total - length + 1, stride)


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


def rolled(axis):
    def cut(ids, length):
        inputs, _ = pairs_by_reshape(ids, length)
        return inputs, jnp.roll(inputs, -1, axis)

    return cut


def rolled_as_a_whole(ids, length):
    n = len(ids) // length * length
    return ids[:n].reshape(-1, length), jnp.roll(ids, -1)[:n].reshape(-1, length)


def beyond_the_end(ids, length):
    where = jnp.arange(len(ids) // length)[:, None] * length + jnp.arange(length)[None]
    return ids[where], ids[where + 1]


RIGHT = [
    ("attend_columns", attend_columns()),
    ("attend_columns", lambda q, k, v: pf.attend(q.T, k.T, v.T).T),
    ("linear_columns", lambda x, stored, bias: (x.T @ stored.T + bias[None]).T),
    ("linear_columns", lambda x, stored, bias: np.stack([stored @ token + bias for token in x.T], axis=1)),
    ("linear_columns", lambda x, stored, bias: jax.vmap(lambda token: stored @ token + bias, 1, 1)(x)),
    ("encode", encode()),
    ("encode", lambda text, encoder: encoder.encode(text)),
    ("encode", lambda text, encoder: np.array(encode()(text, encoder), int)),
    ("encode", lambda text, encoder: tuple(encode()(text, encoder))),
    ("windows", slices(whole_windows)),
    ("windows", lambda x, length, stride: np.lib.stride_tricks.sliding_window_view(x, length)[::stride]),
    ("pairs", pairs()),
    ("pairs", pairs_by_reshape),
    ("pairs", lambda ids, length: [part.tolist() for part in pairs_by_reshape(ids, length)]),
    ("pairs", lambda ids, length: np.stack(pairs_by_reshape(ids, length))),
]
WRONG = [
    ("attend_columns", lambda q, k, v: v @ jax.nn.softmax(k.T @ q, axis=0), "not scaled"),
    ("attend_columns", lambda q, k, v: v @ jax.nn.softmax(k.T @ q * np.sqrt(len(q)), axis=0), "multiply by the root"),
    ("attend_columns", lambda q, k, v: v @ jax.nn.softmax(k.T @ q / len(q), axis=0), "divide by d_k"),
    ("attend_columns", attend_columns(width=lambda q, k, v: q.shape[-1]), "root of the number of queries"),
    ("attend_columns", attend_columns(width=lambda q, k, v: k.shape[-1]), "root of the number of keys"),
    ("attend_columns", attend_columns(axis=-1), "over the queries: the softmax runs along rows"),
    ("attend_columns", attend_columns(axis=(0, 1)), "all queries and keys together"),
    ("attend_columns", lambda q, k, v: v @ jax.nn.softmax(q.T @ k / np.sqrt(len(q)), axis=0), "scores are transposed"),
    (
        "attend_columns",
        lambda q, k, v: v @ jax.nn.softmax(k.T @ q / np.sqrt(len(q)), axis=0).T,
        "weights are transposed in the product",
    ),
    ("attend_columns", lambda q, k, v: pf.attend(q, k, v), "formula for rows as it stands"),
    ("attend_columns", lambda q, k, v: pf.attend(q.T, k.T, v.T), "one row per query; here tokens are columns"),
    ("linear_columns", lambda x, stored, bias: np.asarray(stored @ x) + np.asarray(bias), "bias runs along the tokens"),
    ("linear_columns", lambda x, stored, bias: stored @ x, "forgot the bias"),
    ("linear_columns", lambda x, stored, bias: stored.T @ x + bias[:, None], "transpose the stored matrix"),
    ("linear_columns", lambda x, stored, bias: x @ stored.T + bias[:, None], "multiply from the right"),
    ("linear_columns", lambda x, stored, bias: x @ stored + bias[:, None], "multiply from the right"),
    ("linear_columns", lambda x, stored, bias: x.T @ stored.T + bias[None], "here tokens are columns"),
    ("encode", encode(leftmost), "whatever pair stands furthest left"),
    ("encode", encode(longest_token), "longest token that fits"),
    ("encode", encode(backwards), "from the last learned to the first"),
    ("encode", encode(first_only), "only the first occurrence"),
    ("encode", encode(from_the_right), "merge from the right"),
    ("encode", encode(one_merge), "stop after one merge"),
    ("encode", encode(lambda ids, encoder: ids), "no merge is applied"),
    ("encode", encode(spell=character_ids), "characters where bytes are expected"),
    ("encode", encode(spell=lambda piece, encoder: [encoder.vocabulary[c] for c in piece]), "characters where bytes"),
    ("encode", encode(spell=lambda piece, encoder: piece.encode()), "each byte itself as its id"),
    ("encode", encode(cut=lambda text: [text]), "merge across the pieces"),
    ("encode", encode(cut=str.split), "the spaces are lost"),
    ("windows", slices(lambda total, length, stride: range(0, total - length, stride)), "last window is missing"),
    ("windows", windows_by_index, "run beyond the end"),
    ("windows", padded_windows, "run beyond the end"),
    ("windows", lambda x, length, stride: x[: len(x) // length * length].reshape(-1, length), "windows side by side"),
    ("windows", slices(lambda total, length, stride: range(total - length + 1)), "windows start at every number"),
    (
        "windows",
        slices(lambda total, length, stride: range(stride, total - length + 1, stride)),
        "first window is miss",
    ),
    ("windows", lambda x, length, stride: slices(whole_windows)(x, stride, length), "length and stride are swapped"),
    (
        "windows",
        slices(lambda total, length, stride: range(0, total - length, stride), lambda length: length + 1),
        "one number too long",
    ),
    ("windows", dilated, "the stride is between the numbers inside"),
    ("windows", lambda x, length, stride: slices(whole_windows)(x, length, stride).T, "the windows are columns"),
    ("pairs", pairs(shift=0), "targets are the inputs themselves"),
    ("pairs", pairs(shift=0, spare=0), "targets are the inputs themselves"),
    ("pairs", pairs(shift=2, spare=2), "shifted by two"),
    ("pairs", lambda ids, length: pairs()(ids, length)[::-1], "inputs and targets are swapped"),
    ("pairs", rolled(axis=1), "the shift goes round inside the row"),
    ("pairs", rolled(axis=0), "along the wrong axis"),
    ("pairs", beyond_the_end, "last row needs ids beyond the end"),
    ("pairs", rolled_as_a_whole, "last row needs ids beyond the end"),
    ("pairs", pairs(spare=2), "last row is missing"),
    ("pairs", pairs(step=lambda length: 1), "rows start at every id"),
    ("pairs", pairs(step=lambda length: length + 1), r"rows are length \+ 1 apart"),
    ("pairs", lambda ids, length: tuple(each.T for each in pairs()(ids, length)), "axes are mixed up"),
]
