"""Answers to the exercises of the chapter `pretrained` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

from plainformer.blocks.layers import standardise


def fused(order=(0, 1, 2), bias=True, cut=None):
    """A reader who cuts column by column, rightly unless said otherwise."""

    def split(x, matrix, offsets, num_heads):
        rows = x @ matrix + (offsets if bias else 0)
        width = x.shape[1] // num_heads

        def columns(part, head):
            if cut is not None:
                return cut(part, head, width, num_heads)
            return range(part * x.shape[1] + head * width, part * x.shape[1] + (head + 1) * width)

        return tuple(np.stack([rows[:, list(columns(part, head))] for head in range(num_heads)]) for part in order)

    return split


def _start(part, head, width, heads):
    return range(head * 3 * width + part * width, head * 3 * width + (part + 1) * width)


def _thirds(part, head, width, heads):
    return range(part + 3 * head * width, part + 3 * (head + 1) * width, 3)


def _far_apart(part, head, width, heads):
    return range(part * heads * width + head, (part + 1) * heads * width, heads)


def _mixed(x, matrix, bias, num_heads):
    parts = np.split(x @ matrix + bias, 3, axis=1)
    return tuple(part.reshape(num_heads, len(x), -1) for part in parts)


FUSED = [
    (fused(cut=_start), "cut the columns into heads first"),
    (fused(cut=_thirds), "every third column"),
    (fused((1, 0, 2)), "keys and queries are exchanged"),
    (fused((0, 2, 1)), "values and keys are exchanged"),
    (fused(bias=False), "forgot the bias"),
    (fused(cut=_far_apart), "num_heads apart"),
    (_mixed, "at once, which mixes tokens"),
]


def blocks(turn=(True, True), times=None, bias=True, relu=True, stream="now", read="now"):
    """A reader who writes the loop out, rightly unless said otherwise."""

    def run(x, up, up_bias, down, down_bias, num_layers):
        now = np.array(x)
        for _ in range(num_layers if times is None else times(num_layers)):
            source = now if read == "now" else x
            inner = np.einsum("ni,oi->no" if turn[0] else "no,oi->ni", source, up) + (up_bias if bias else 0)
            inner = np.where(inner > 0, inner, 0) if relu else inner
            new = np.einsum("ni,oi->no" if turn[1] else "no,oi->ni", inner, down) + (down_bias if bias else 0)
            now = new + {"now": now, "first": x, "none": 0}[stream]
        return now

    return run


SHARED = [
    (blocks(turn=(False, False)), "the matrices are not turned"),
    (blocks(turn=(True, False)), "the second matrix"),
    (blocks(turn=(False, True)), "the first matrix"),
    (blocks(times=lambda layers: 1), r"through the block once(?! too)"),
    (blocks(times=lambda layers: layers + 1), "once too often"),
    (blocks(read="first"), "every block reads"),
    (blocks(stream="first"), "you add the tokens as they came in"),
    (blocks(stream="none"), "residual connection is missing"),
    (blocks(bias=False), "forgot both biases"),
    (blocks(relu=False), "activation is missing"),
]


def first_rows(vectors=3, start=0, norm="sum", turned=True, bias=True):
    """A reader who goes token by token, rightly unless said otherwise."""

    def one(row):
        return (row - np.mean(row)) / np.std(row)

    def run(tokens, table, positions, segment, stored, offsets):
        rows = []
        for n, token in enumerate(tokens):
            place = token if start == "id" else n + start
            parts = [table[token], positions[place], segment]
            parts = [parts[each] for each in range(3) if vectors == 3 or each != vectors]
            if norm in ("each", "token"):
                parts = [one(part) if norm == "each" or i == 0 else part for i, part in enumerate(parts)]
            row = one(sum(parts)) if norm == "sum" else sum(parts)
            row = np.einsum("i,oi->o" if turned else "o,oi->i", row, stored) + (offsets if bias else 0)
            rows.append(one(row) if norm == "wide" else row)
        return np.stack(rows)

    return run


def over_tokens(tokens, table, positions, segment, stored, bias):
    rows = table[tokens] + positions[: len(tokens)] + segment
    return (rows - rows.mean(0)) / rows.std(0) @ stored.T + bias


FIRST = [
    (first_rows(vectors=1), "the positions are missing"),
    (first_rows(start=1), "count positions from 1"),
    (first_rows(start="id"), "positions up by the token's id"),
    (first_rows(vectors=2), "the segment is missing"),
    (first_rows(norm="token"), "normalise the token's vector before"),
    (first_rows(norm="each"), "normalise each of the three vectors"),
    (first_rows(norm="none"), "the norm is missing"),
    (first_rows(norm="wide"), "normalise after the map"),
    (over_tokens, "normalise each feature over the tokens"),
    (first_rows(turned=False), "the matrix is not turned"),
    (first_rows(bias=False), "forgot the bias"),
]


def mapped(key=None, allowed=None, places=True, ask=None):
    """A reader who goes through the atoms one by one, rightly unless said otherwise."""

    def find(weights, elements, arrow):
        arrow, found = int(arrow), []
        for m in range(len(elements)):
            if elements[m] == 0 or (m < arrow if ask is None else not ask(m, arrow)):
                continue
            may = allowed or (lambda e, m, elements, arrow: e < arrow and elements[e] == elements[m])
            some = [e for e in range(len(elements)) if may(e, m, elements, arrow)]
            best = max(some, key=lambda e: key(weights, m, e) if key else weights[m][e])
            found.append(best if places else sum(1 for e in range(best) if elements[e]))
        return np.array(found)

    return find


MAPPED = [
    (mapped(key=lambda weights, m, e: weights[e][m]), "you read columns"),
    (mapped(allowed=lambda e, m, elements, arrow: e < arrow and elements[e] > 0), "every element"),
    (mapped(allowed=lambda e, m, elements, arrow: e < arrow), "bonds and brackets"),
    (mapped(allowed=lambda e, m, elements, arrow: elements[e] == elements[m]), "behind the arrow may be chosen"),
    (mapped(places=False), "you count atoms"),
    (mapped(key=lambda weights, m, e: -weights[m][e]), "smallest weight"),
    (
        mapped(
            ask=lambda m, arrow: m < arrow,
            allowed=lambda e, m, elements, arrow: e > arrow and elements[e] == elements[m],
        ),
        "you map the atoms before",
    ),
]


def by_the_package(tokens, table, positions, segment, stored, bias):
    rows = table[tokens] + positions[jnp.arange(len(tokens))] + segment
    return standardise(rows, 1e-12) @ stored.T + bias


RIGHT = [
    ("split_fused", in_numpy(fused())),
    ("shared_block", in_numpy(blocks())),
    ("narrow_embedding", in_numpy(first_rows())),
    ("narrow_embedding", in_jax(by_the_package)),
    ("atom_map", in_numpy(mapped())),
]
WRONG = [
    *(("split_fused", in_numpy(function), words) for function, words in FUSED),
    *(("shared_block", in_numpy(function), words) for function, words in SHARED),
    *(("narrow_embedding", in_numpy(function), words) for function, words in FIRST),
    *(("atom_map", in_numpy(function), words) for function, words in MAPPED),
]
