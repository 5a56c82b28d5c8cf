"""Exercise `split_fused`: queries, keys and values of all heads from one matrix that holds all three."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _thirds(rows):
    """Three parts, side by side."""
    return np.split(rows, 3, axis=-1)


def _per_head(rows, num_heads):
    """Cut the columns of each part into heads."""
    seq, width = rows.shape
    return rows.reshape(seq, num_heads, width // num_heads).transpose(1, 0, 2)


def _threes_in_heads(rows, num_heads):
    """As if each head had its query, key and value side by side."""
    seq, width = rows.shape
    parts = rows.reshape(seq, num_heads, 3, width // (3 * num_heads)).transpose(2, 1, 0, 3)
    return list(parts)


def _thirds_in_heads(rows, num_heads):
    """Cut into three, then each part into heads."""
    return [_per_head(part, num_heads) for part in _thirds(rows)]


def split_fused(
    x,
    fused,
    bias,
    num_heads,
    *,
    multiply=lambda x, fused, bias: x @ fused + bias,
    parts=_thirds_in_heads,
    order=lambda found: found,
):
    """Return queries, keys and values, each `(num_heads, seq, d_k)`."""
    return np.stack(order(parts(multiply(x, fused, bias), num_heads)))


def _axis_of_heads_behind(rows, num_heads):
    seq, width = rows.shape
    return [
        part.reshape(seq, width // (3 * num_heads), num_heads).transpose(2, 0, 1) for part in np.split(rows, 3, axis=-1)
    ]


def _reshaped_only(rows, num_heads):
    seq, width = rows.shape
    return [part.reshape(num_heads, seq, width // (3 * num_heads)) for part in np.split(rows, 3, axis=-1)]


def _every_third_column(rows, num_heads):
    return [_per_head(rows[:, start::3], num_heads) for start in range(3)]


MISTAKES = [
    Mistake(
        "you cut the columns into heads first, as if each head had its query, key and value side by side",
        "In this file all queries stand before all keys. Which cut comes first, that into three or that into heads?",
        parts=_threes_in_heads,
    ),
    Mistake(
        "you take every third column for the queries, the next for the keys",
        "The three matrices stand side by side. How many columns in a row belong to the queries?",
        parts=_every_third_column,
    ),
    Mistake(
        "keys and queries are exchanged",
        "The order in the file is queries, keys, values. Which part is which of yours?",
        order=lambda found: [found[1], found[0], found[2]],
    ),
    Mistake(
        "values and keys are exchanged",
        "The order in the file is queries, keys, values. Which part is which of yours?",
        order=lambda found: [found[0], found[2], found[1]],
    ),
    Mistake(
        "you forgot the bias",
        "What does the map return for a token of zeros?",
        multiply=lambda x, fused, bias: x @ fused,
    ),
    Mistake(
        "each head has taken columns that lie num_heads apart",
        "Head 1 has the first d_k columns. Which of the axes (heads, d_k) is the outer one in your reshape?",
        parts=_axis_of_heads_behind,
    ),
    Mistake(
        "you reshape (seq, d_model) to (num_heads, seq, d_k) at once, which mixes tokens",
        "A reshape never changes the order in which numbers lie. Which two axes must be exchanged afterwards?",
        parts=_reshaped_only,
    ),
]

_RNG = np.random.default_rng(2017)


def _case(name, seq, d_model, num_heads, is_edge=False):
    inputs = draw(_RNG, 2, x=(seq, d_model), fused=(d_model, 3 * d_model), bias=(3 * d_model,))
    return Case(name, {**inputs, "num_heads": num_heads}, is_edge)


EXERCISE = Exercise(
    split_fused,
    MISTAKES,
    cases=[
        _case("two heads of four columns", 5, 8, 2),
        _case("four heads of three columns", 7, 12, 4),
        _case("three heads of three columns", 3, 9, 3),
        _case("a single token", 1, 6, 2, is_edge=True),
    ],
    examples=[
        {
            "x": np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
            "fused": np.arange(48.0).reshape(4, 12),
            "bias": np.arange(12.0) / 10,
            "num_heads": 2,
        }
    ],
    result="(num_heads, seq, d_k)",
    tried_on="{x[0]} tokens of width {x[1]}, {num_heads} heads",
    parts=("queries", "keys", "values"),
)
