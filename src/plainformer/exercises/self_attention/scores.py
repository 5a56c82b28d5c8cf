"""Exercise `scores`: how well each key answers each query, scaled.

The right steps are float64 NumPy and share no line with `plainformer.attention.self_attention`, which the chapter
explains: a fault there cannot hide here. Leading axes (heads) pass through them, in `weights` and `attend`, too.
"""

from types import SimpleNamespace

from plainformer.exercises.model import Exercise, Mistake
from plainformer.exercises.self_attention._cases import attention_cases, attention_examples


def scores(
    queries,
    keys,
    *,
    compare=lambda queries, keys: queries @ keys.swapaxes(-1, -2),
    scale=lambda n: n.d_k**-0.5,
    **sizes,
):
    """Return the scaled scores; a wrong scale may use any of the sizes, those added by name included."""
    n = SimpleNamespace(q_seq=queries.shape[-2], kv_seq=keys.shape[-2], d_k=queries.shape[-1], **sizes)
    return compare(queries, keys) * scale(n)


SCALE = [
    Mistake(
        "your scores are not scaled: they are the bare dot products",
        "The longer the keys, the larger their dot products. What do you divide by, to make up for that?",
        scale=lambda n: 1.0,
    ),
    Mistake(
        "you multiply by the root of d_k, where you should divide by it",
        "Are the dot products of long vectors too large or too small?",
        scale=lambda n: n.d_k**0.5,
    ),
    Mistake(
        "you divide by d_k (or twice by its root), not by its root",
        "The sum of d_k independent products of variance 1 has variance d_k. What, then, is its typical size?",
        scale=lambda n: 1 / n.d_k,
    ),
]
SCALE_BY_LENGTH = [
    Mistake(
        "you divide by the root of the number of queries, not by the root of d_k",
        "Which axis of queries.shape is d_k?",
        scale=lambda n: n.q_seq**-0.5,
    ),
    Mistake(
        "you divide by the root of the number of keys, not by the root of d_k",
        "Which axis of keys.shape is d_k?",
        scale=lambda n: n.kv_seq**-0.5,
    ),
]
COMPARE = [
    Mistake(
        "your scores are transposed: row n belongs to key n, not to query n",
        "Which of queries @ keys.T and keys @ queries.T has one row per query?",
        compare=lambda queries, keys: keys @ queries.swapaxes(-1, -2),
    ),
    Mistake(
        "you compare the queries with one another; the keys play no part",
        "A score says how well a key answers a query. Where do the keys enter?",
        compare=lambda queries, keys: queries @ queries.swapaxes(-1, -2),
    ),
]
SCORES = [*SCALE, *SCALE_BY_LENGTH, *COMPARE]

EXERCISE = Exercise(
    scores,
    SCORES,
    cases=attention_cases("queries keys"),
    examples=attention_examples("queries keys"),
    result="(q_seq, kv_seq)",
    tried_on="{queries[0]} queries, {keys[0]} keys",
)
