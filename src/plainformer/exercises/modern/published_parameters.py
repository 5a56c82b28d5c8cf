"""Exercise `published_parameters`: how many numbers a published decoder has, from the sizes in its configuration."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def published_parameters(
    vocab_size,
    d_model,
    num_layers,
    num_heads,
    num_kv_heads,
    d_k,
    d_ff,
    has_bias,
    is_tied,
    *,
    head_width=lambda d_k, d_model, num_heads: d_k,
    kv_heads=lambda num_heads, num_kv_heads: num_kv_heads,
    matrices=lambda: 3,
    biases=lambda has_bias: has_bias,
    norms=lambda num_layers: 2 * num_layers + 1,
    tables=lambda is_tied: 1 if is_tied else 2,
):
    """Return the number of learned numbers: tables, attention with biases or without, a gated network, and norms."""
    width, pairs = head_width(d_k, d_model, num_heads), kv_heads(num_heads, num_kv_heads)
    attention = 2 * d_model * (num_heads + pairs) * width
    attention += ((num_heads + 2 * pairs) * width + d_model) * biases(has_bias)
    network = matrices() * d_model * d_ff
    blocks = num_layers * (attention + network)
    return np.array(tables(is_tied) * vocab_size * d_model + blocks + norms(num_layers) * d_model)


MISTAKES = [
    Mistake(
        "the gate of the network is forgotten",
        "How many matrices has a network whose activation is SwiGLU?",
        matrices=lambda: 2,
    ),
    Mistake(
        "keys and values have as many heads as queries, where a group of these shares one",
        "Which number of heads says how wide the maps to keys and values are?",
        kv_heads=lambda num_heads, num_kv_heads: num_heads,
    ),
    Mistake(
        "the biases of the attention are forgotten",
        "If a map has a bias, how many numbers are there for each of its outputs?",
        biases=lambda has_bias: False,
    ),
    Mistake(
        "an output that is tied to the embedding is counted a second time",
        "Which numbers has an output that uses the embedding's table?",
        tables=lambda is_tied: 2,
    ),
    Mistake(
        "an output with a matrix of its own is not counted",
        "If the output is not tied, where are its numbers?",
        tables=lambda is_tied: 1,
    ),
    Mistake(
        "the norms are forgotten",
        "What does a norm learn for each column?",
        norms=lambda num_layers: 0,
    ),
    Mistake(
        "the norm behind the last block is forgotten",
        "What happens to the stream before the logits?",
        norms=lambda num_layers: 2 * num_layers,
    ),
    Mistake(
        "heads are taken to be as wide as the token divided by their number",
        "Does the configuration give the width of a head by itself?",
        head_width=lambda d_k, d_model, num_heads: d_model // num_heads,
    ),
]


def _sizes(*sizes, has_bias, is_tied):
    names = ("vocab_size", "d_model", "num_layers", "num_heads", "num_kv_heads", "d_k", "d_ff")
    return dict(zip(names, sizes, strict=True)) | {"has_bias": has_bias, "is_tied": is_tied}


EXERCISE = Exercise(
    published_parameters,
    MISTAKES,
    cases=[
        Case("biases and an output of its own", _sizes(97, 12, 3, 6, 2, 5, 20, has_bias=True, is_tied=False)),
        Case("no biases, a tied output", _sizes(83, 24, 5, 4, 1, 7, 31, has_bias=False, is_tied=True)),
        Case("as many heads of all kinds", _sizes(41, 8, 1, 2, 2, 4, 9, has_bias=False, is_tied=True), is_edge=True),
    ],
    examples=[
        _sizes(10, 4, 1, 2, 1, 3, 5, has_bias=False, is_tied=True),
        _sizes(10, 4, 1, 2, 1, 3, 5, has_bias=True, is_tied=False),
    ],
    result="()",
    tried_on="a vocabulary of {vocab_size} and tokens of width {d_model}",
)
