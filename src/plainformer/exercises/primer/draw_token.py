"""Exercise `draw_token`: the token that a number between 0 and 1 picks from the probabilities."""

import numpy as np

from plainformer.exercises.generation.temperature import softmax
from plainformer.exercises.model import Case, Exercise, Mistake


def draw_token(
    logits,
    u,
    *,
    expect=softmax,
    add=np.cumsum,
    pick=lambda ends, u: np.argmax(ends > u),
):
    """Return the first token at which the sum of the probabilities so far is above `u`."""
    return np.asarray(pick(add(expect(logits)), u))


def _sorted(probabilities):
    return np.cumsum(np.sort(probabilities)[::-1])


MISTAKES = [
    Mistake(
        "you always take the likeliest token: nothing is drawn",
        "How often should a token come whose probability is a quarter?",
        add=lambda probabilities: probabilities,
        pick=lambda ends, u: np.argmax(ends),
    ),
    Mistake(
        "you compare each probability with u by itself: they are not added up",
        "The tokens share the line from 0 to 1. Where does the stretch of the second one end?",
        add=lambda probabilities: probabilities,
    ),
    Mistake(
        "you add up the logits themselves: the softmax is missing",
        "Do logits sum to one?",
        expect=lambda logits: logits,
    ),
    Mistake(
        "you add up exponentials that are not divided by their sum",
        "Where does the line end, on which u lies between 0 and 1?",
        expect=[lambda logits: np.exp(logits - logits.max()), np.exp],
    ),
    Mistake(
        "you take the token after the right one",
        "How many sums are at most u, and at which index do indices begin?",
        pick=lambda ends, u: np.argmax(ends > u) + 1,
    ),
    Mistake(
        "you take the token before the right one",
        "If u is 0, which token should come?",
        pick=lambda ends, u: np.argmax(ends > u) - 1,
    ),
    Mistake(
        "you sort the probabilities first, so you return a rank and not a token",
        "Whose stretch of the line comes first, the likeliest token's or token 0's?",
        add=_sorted,
    ),
    Mistake(
        "you go from the end of the line: large u should give late tokens, and give you early ones",
        "If u is 0, which token should come?",
        pick=lambda ends, u: np.argmax(ends > 1 - u),
    ),
    Mistake(
        "large logits overflow: exp(1000) is infinite",
        "A softmax does not change if a number is taken off every logit. Which one keeps exp within bounds?",
        expect=lambda logits: np.exp(logits) / np.exp(logits).sum(),
    ),
]


def _case(name, logits, u, is_edge=False):
    return Case(name, {"logits": np.array(logits, float), "u": u}, is_edge)


EXERCISE = Exercise(
    draw_token,
    MISTAKES,
    cases=[
        _case("6 tokens, u = 0.35", [0.5, 1.2, -0.3, 2.0, 0.1, -1.0], 0.35),
        _case("6 tokens, u = 0.95", [0.5, 1.2, -0.3, 2.0, 0.1, -1.0], 0.95),
        _case("5 tokens, u = 0.8", [1.0, -0.5, 0.3, 0.7, 0.2], 0.8),
        _case("5 tokens, u = 0.02", [-1.0, 2.5, 1.3, 1.7, 0.2], 0.02),
        _case("u = 0", [0.2, 1.0, 0.4], 0.0, is_edge=True),
        _case("logits near 1000", [1000.0, 1001.0, 999.0], 0.6, is_edge=True),
    ],
    examples=[{"logits": np.log(np.array([1.0, 5.0, 2.0])), "u": u} for u in (0.05, 0.3, 0.8)]
    + [{"logits": np.array([1000.0, 1000.0]), "u": 0.7}],
    result="()",
    tried_on="{logits[0]} tokens",
)
