"""Exercise `absorbed`: scores of all heads with short vectors, without making a key."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def _cut(queries, own):
    return queries[..., :own], queries[..., own:]


def absorbed(
    queries,
    latents,
    rotary_keys,
    key_up,
    *,
    cut=_cut,
    down=lambda own, key_up: np.einsum("hqi,hwi->hqw", own, key_up),
    meet=lambda lowered, latents: np.einsum("hqw,kw->hqk", lowered, latents),
    turned=lambda shared, rotary_keys: np.einsum("hqi,ki->hqk", shared, rotary_keys),
    scale=lambda d_k, own, width: d_k**-0.5,
    finish=lambda scores: scores,
):
    """Return the scaled scores of every head."""
    own, shared = cut(queries, key_up.shape[-1])
    scores = meet(down(own, key_up), latents) + turned(shared, rotary_keys)
    return finish(scores * scale(queries.shape[-1], key_up.shape[-1], latents.shape[-1]))


def _softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _last_first(queries, own):
    return queries[..., queries.shape[-1] - own :], queries[..., : queries.shape[-1] - own]


MISTAKES = [
    Mistake(
        "the scores are not scaled",
        "By what does attention divide the product of a query and a key of d_k columns?",
        scale=lambda d_k, own, width: 1.0,
    ),
    Mistake(
        "you divide by the root of the width of a short vector",
        "The products are those of queries and keys. How many columns has a query?",
        scale=lambda d_k, own, width: width**-0.5,
    ),
    Mistake(
        "you divide by the root of the head's own columns alone",
        "Do the shared columns not belong to the key?",
        scale=lambda d_k, own, width: own**-0.5,
    ),
    Mistake(
        "the shared columns are missing: no score knows how far apart two tokens stand",
        "What do the last columns of a query meet?",
        turned=lambda shared, rotary_keys: 0.0,
    ),
    Mistake(
        "you take the first columns of a query for the shared ones",
        "In which order are a key's columns: its own, then the shared ones, or the other way round?",
        cut=_last_first,
    ),
    Mistake(
        "all heads go down by the matrix of the first head",
        "What is the first axis of key_up?",
        down=lambda own, key_up: np.einsum("hqi,wi->hqw", own, key_up[0]),
    ),
    Mistake(
        "you return weights, after a softmax",
        "Are scores what comes before the softmax, or after it?",
        finish=_softmax,
    ),
    Mistake(
        "your scores are transposed: the last axis is that of the queries",
        "Which axis of the scores does the softmax sum over?",
        finish=lambda scores: scores.swapaxes(-1, -2),
    ),
]

_RNG = np.random.default_rng(2024)


def _case(name, heads, q_seq, kv_seq, own, rotary, width, is_edge=False):
    shapes = {
        "queries": (heads, q_seq, own + rotary),
        "latents": (kv_seq, width),
        "rotary_keys": (kv_seq, rotary),
        "key_up": (heads, width, own),
    }
    return Case(name, draw(_RNG, 2, **shapes), is_edge)


def _example(queries, key_up):
    return floats(queries=queries, latents=[[1, 2], [0, 1]], rotary_keys=[[5], [3]], key_up=key_up)


EXERCISE = Exercise(
    absorbed,
    MISTAKES,
    cases=[
        _case("two heads", 2, 5, 7, 4, 6, 3),
        _case("three heads, a wider short vector", 3, 4, 6, 5, 2, 8),
        _case("one head and one query", 1, 1, 5, 2, 4, 3, is_edge=True),
    ],
    examples=[
        _example([[[2, 1]]], [[[1], [1]]]),
        _example([[[2, 1]], [[2, 1]]], [[[1], [1]], [[1], [-1]]]),
        _example([[[2, 0, 1]]], [[[1, 0], [1, 2]]]),
    ],
    result="(heads, q_seq, kv_seq)",
    tried_on="queries {queries}, short vectors {latents}, shared columns {rotary_keys}, matrices {key_up}",
)
