"""Exercise `alibi`: a bias for each head that grows with the distance.

The right steps are float64 NumPy and share no line with `plainformer.positions`.
"""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _ahead(q_seq):
    """How far key j stands ahead of query i: j - i, as `(query, key)`."""
    return np.arange(q_seq) - np.arange(q_seq)[:, None]


def alibi(
    num_heads,
    q_seq,
    *,
    slopes=lambda n: 2.0 ** (-8 * np.arange(1, n + 1) / n),
    distance=lambda q_seq: np.abs(_ahead(q_seq)),
    combine=lambda slopes, distance: -slopes[:, None, None] * distance,
):
    """Return what is added to the scores: each head's slope times the distance, negative."""
    return combine(slopes(num_heads), distance(q_seq))


MISTAKES = [
    Mistake(
        "your bias is positive: distant keys get a bonus, not a penalty",
        "What does a larger score do to a weight? And which keys should get less of it?",
        combine=lambda slopes, distance: slopes[:, None, None] * distance,
    ),
    Mistake(
        "all heads have the same slope",
        "If all heads forget equally fast, which of them can look far back?",
        slopes=[
            lambda n: np.full(n, 2.0 ** (-8 / n)),
            lambda n: np.full(n, 2.0**-8),
            lambda n: np.ones(n),
            lambda n: np.full(n, 0.5),
        ],
    ),
    Mistake(
        "your slopes begin at 1: you count the heads from 0",
        "The last head has slope 2^-8. Which h gives that?",
        slopes=lambda n: 2.0 ** (-8 * np.arange(n) / n),
    ),
    Mistake(
        "your slopes are in reverse order: the first head gets the smallest",
        "Which h does the first head have, and is 2^(-8h / num_heads) largest or smallest there?",
        slopes=lambda n: 2.0 ** (-8 * np.arange(n, 0, -1) / n),
    ),
    Mistake(
        "your slopes are 2^-h, which is right for eight heads only",
        "The last head should have slope 2^-8, whatever the number of heads. Where does num_heads come in?",
        slopes=lambda n: 2.0 ** -np.arange(1, n + 1),
    ),
    Mistake(
        "the 8 is missing from your exponent: your slopes are 2^(-h / num_heads)",
        "The last head should have slope 2^-8. What is yours?",
        slopes=lambda n: 2.0 ** (-np.arange(1, n + 1) / n),
    ),
    Mistake(
        "your slopes go in proportion to h or to 1 / h, where each should be the same fraction of the one before",
        "Is the ratio of neighbouring slopes the same for all heads?",
        slopes=[lambda n: np.arange(1, n + 1) / n, lambda n: 1 / np.arange(1, n + 1)],
    ),
    Mistake(
        "your distances are squared",
        "By how much should the bias change from one key to the next, near and far?",
        distance=lambda q_seq: _ahead(q_seq) ** 2,
    ),
    Mistake(
        "your distance has a sign: keys after the query get a bonus, which the more distant ones have more of",
        "Distance is the same in both directions. What makes i - j positive?",
        distance=lambda q_seq: -_ahead(q_seq),
    ),
    Mistake(
        "your distance has a sign: keys before the query get a bonus, which the more distant ones have more of",
        "Distance is the same in both directions. What makes j - i positive?",
        distance=_ahead,
    ),
    Mistake(
        "only keys before the query have a penalty; those after it have none",
        "With a causal mask nobody sees the later keys, but here there is none. How far is key j from query i < j?",
        distance=lambda q_seq: np.maximum(-_ahead(q_seq), 0),
    ),
    Mistake(
        "only keys after the query have a penalty; those before it have none",
        "How far is key j from query i > j?",
        distance=lambda q_seq: np.maximum(_ahead(q_seq), 0),
    ),
    Mistake(
        "you hide the keys after the query: their bias is minus infinity",
        "Hiding is the mask's task. How far is key j from query i < j?",
        distance=[
            lambda q_seq: np.where(_ahead(q_seq) > 0, np.inf, -_ahead(q_seq)),
            lambda q_seq: np.where(_ahead(q_seq) > 0, 1e9, -_ahead(q_seq)),
        ],
    ),
    Mistake(
        "your bias does not depend on the query: it measures how far a key is from the first position",
        "From where does a query look at key j?",
        distance=[
            lambda q_seq: np.arange(q_seq) + np.zeros((q_seq, 1)),
            lambda q_seq: -np.arange(q_seq) + np.zeros((q_seq, 1)),
            lambda q_seq: np.arange(q_seq)[None],
            lambda q_seq: -np.arange(q_seq)[None],
        ],
    ),
    Mistake(
        "your distances are one too large: a query's own key has a penalty, too",
        "How far is a token from itself?",
        distance=lambda q_seq: np.abs(_ahead(q_seq)) + 1,
    ),
    Mistake(
        "the heads are your last axis, not your first",
        "Which axis counts the heads in the scores that the bias is added to, (num_heads, q_seq, q_seq)?",
        combine=lambda slopes, distance: -distance[:, :, None] * slopes,
    ),
    Mistake(
        "you return factors, exp(bias), not what is added to the scores",
        "The softmax exponentiates once. What happens to a score of 2 and a bias of 0?",
        combine=lambda slopes, distance: np.exp(-slopes[:, None, None] * distance),
    ),
    Mistake(
        "your bias is the distance divided by the slope",
        "Should a head with a small slope forget slowly or fast?",
        combine=lambda slopes, distance: -distance / slopes[:, None, None],
    ),
]


def _case(num_heads, q_seq, is_edge=False):
    heads = "one head" if num_heads == 1 else f"{num_heads} heads"
    return Case(f"{heads}, {q_seq} tokens", {"num_heads": num_heads, "q_seq": q_seq}, is_edge)


EXERCISE = Exercise(
    alibi,
    MISTAKES,
    cases=[_case(4, 5), _case(8, 6), _case(2, 3), _case(1, 5, is_edge=True)],
    examples=[{"num_heads": 2, "q_seq": 3}, {"num_heads": 4, "q_seq": 3}],
    result="(num_heads, q_seq, q_seq)",
    tried_on="{num_heads} heads, {q_seq} tokens",
)
