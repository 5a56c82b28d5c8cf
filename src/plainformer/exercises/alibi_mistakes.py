"""The mistakes in ALiBi's bias that the exercises know by name."""

import numpy as np

from plainformer.exercises.exercise import Mistake


def _ahead(q_seq):
    """How far key j stands ahead of query i: j - i, as `(query, key)`."""
    return np.arange(q_seq) - np.arange(q_seq)[:, None]


ALIBI = [
    Mistake(
        "combine",
        "your bias is positive: distant keys get a bonus, not a penalty",
        "What does a larger score do to a weight? And which keys should get less of it?",
        lambda slopes, distance: slopes[:, None, None] * distance,
    ),
    Mistake(
        "slopes",
        "all heads have the same slope",
        "If all heads forget equally fast, which of them can look far back?",
        lambda n: np.full(n, 2.0 ** (-8 / n)),
        lambda n: np.full(n, 2.0**-8),
        lambda n: np.ones(n),
        lambda n: np.full(n, 0.5),
    ),
    Mistake(
        "slopes",
        "your slopes begin at 1: you count the heads from 0",
        "The last head has slope 2^-8. Which h gives that?",
        lambda n: 2.0 ** (-8 * np.arange(n) / n),
    ),
    Mistake(
        "slopes",
        "your slopes are in reverse order: the first head gets the smallest",
        "Which h does the first head have, and is 2^(-8h / num_heads) largest or smallest there?",
        lambda n: 2.0 ** (-8 * np.arange(n, 0, -1) / n),
    ),
    Mistake(
        "slopes",
        "your slopes are 2^-h, which is right for eight heads only",
        "The last head should have slope 2^-8, whatever the number of heads. Where does num_heads come in?",
        lambda n: 2.0 ** -np.arange(1, n + 1),
    ),
    Mistake(
        "slopes",
        "the 8 is missing from your exponent: your slopes are 2^(-h / num_heads)",
        "The last head should have slope 2^-8. What is yours?",
        lambda n: 2.0 ** (-np.arange(1, n + 1) / n),
    ),
    Mistake(
        "slopes",
        "your slopes go in proportion to h or to 1 / h, where each should be the same fraction of the one before",
        "Is the ratio of neighbouring slopes the same for all heads?",
        lambda n: np.arange(1, n + 1) / n,
        lambda n: 1 / np.arange(1, n + 1),
    ),
    Mistake(
        "distance",
        "your distances are squared",
        "By how much should the bias change from one key to the next, near and far?",
        lambda q_seq: _ahead(q_seq) ** 2,
    ),
    Mistake(
        "distance",
        "your distance has a sign: keys after the query get a bonus, which the more distant ones have more of",
        "Distance is the same in both directions. What makes i - j positive?",
        lambda q_seq: -_ahead(q_seq),
    ),
    Mistake(
        "distance",
        "your distance has a sign: keys before the query get a bonus, which the more distant ones have more of",
        "Distance is the same in both directions. What makes j - i positive?",
        _ahead,
    ),
    Mistake(
        "distance",
        "only keys before the query have a penalty; those after it have none",
        "With a causal mask nobody sees the later keys, but here there is none. How far is key j from query i < j?",
        lambda q_seq: np.maximum(-_ahead(q_seq), 0),
    ),
    Mistake(
        "distance",
        "only keys after the query have a penalty; those before it have none",
        "How far is key j from query i > j?",
        lambda q_seq: np.maximum(_ahead(q_seq), 0),
    ),
    Mistake(
        "distance",
        "you hide the keys after the query: their bias is minus infinity",
        "Hiding is the mask's task. How far is key j from query i < j?",
        lambda q_seq: np.where(_ahead(q_seq) > 0, np.inf, -_ahead(q_seq)),
        lambda q_seq: np.where(_ahead(q_seq) > 0, 1e9, -_ahead(q_seq)),
    ),
    Mistake(
        "distance",
        "your bias does not depend on the query: it measures how far a key is from the first position",
        "From where does a query look at key j?",
        lambda q_seq: np.arange(q_seq) + np.zeros((q_seq, 1)),
        lambda q_seq: -np.arange(q_seq) + np.zeros((q_seq, 1)),
        lambda q_seq: np.arange(q_seq)[None],
        lambda q_seq: -np.arange(q_seq)[None],
    ),
    Mistake(
        "distance",
        "your distances are one too large: a query's own key has a penalty, too",
        "How far is a token from itself?",
        lambda q_seq: np.abs(_ahead(q_seq)) + 1,
    ),
    Mistake(
        "combine",
        "the heads are your last axis, not your first",
        "Which axis counts the heads in the scores that the bias is added to, (num_heads, q_seq, q_seq)?",
        lambda slopes, distance: -distance[:, :, None] * slopes,
    ),
    Mistake(
        "combine",
        "you return factors, exp(bias), not what is added to the scores",
        "The softmax exponentiates once. What happens to a score of 2 and a bias of 0?",
        lambda slopes, distance: np.exp(-slopes[:, None, None] * distance),
    ),
    Mistake(
        "combine",
        "your bias is the distance divided by the slope",
        "Should a head with a small slope forget slowly or fast?",
        lambda slopes, distance: -distance / slopes[:, None, None],
    ),
]
