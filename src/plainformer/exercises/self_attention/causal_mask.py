"""Exercise `causal_mask`: which earlier tokens each token may see."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def causal_mask(seq, *, allow=lambda query, key: key <= query):
    """Return `True` in row n and column m where token n may see token m."""
    places = np.arange(seq)
    return allow(places[:, None], places)


MISTAKES = [
    Mistake(
        "your mask is the wrong way round: each token sees itself and those that come after it",
        "Row n belongs to the token that looks. In which columns are the tokens before it?",
        allow=lambda query, key: key >= query,
    ),
    Mistake(
        "a token may not see itself, and the first sees nothing at all",
        "Row n is asked for token n + 1. Has it read token n?",
        allow=lambda query, key: key < query,
    ),
    Mistake(
        "each token sees one too far: the very token that it is asked for",
        "Row n is asked for token n + 1. May it read this one?",
        allow=lambda query, key: key <= query + 1,
    ),
    Mistake(
        "your mask is inverted: `True` stands where a token may not look",
        "True means: may see. What should stand at row 0 and column 0?",
        allow=lambda query, key: key > query,
    ),
    Mistake(
        "nothing is hidden",
        "Which columns of row 0 come after its token?",
        allow=lambda query, key: (key >= 0) & (query >= 0),
    ),
    Mistake(
        "each token sees itself alone",
        "What can a token learn that looks at no other?",
        allow=lambda query, key: key == query,
    ),
]

EXERCISE = Exercise(
    causal_mask,
    MISTAKES,
    cases=[Case(f"{seq} tokens", {"seq": seq}, is_edge=seq == 1) for seq in (5, 3, 1)],
    examples=[{"seq": 3}],
    result="(seq, seq)",
    tried_on="{seq} tokens",
)
