"""Exercise `induction_score`: how much of a head's attention goes to what came after the last such token."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _queries(seq, period):
    """The tokens that have occurred before."""
    return np.arange(period, seq)


def induction_score(
    weights,
    period,
    *,
    queries=_queries,
    keys=lambda n, period: n - period + 1,
    pick=lambda weights, n, m: weights[n, m],
    average=np.mean,
):
    """Return the mean weight from each token to the one after its last occurrence."""
    n = queries(len(weights), period)
    return np.asarray(average(pick(weights, n, keys(n, period))))


MISTAKES = [
    Mistake(
        "you look at the token itself where it stood before: one place too early",
        "The head is to say what came after. Which token is that, if the same one stood at n - period?",
        keys=lambda n, period: n - period,
    ),
    Mistake(
        "you look two places after the earlier token: one place too far",
        "The same token stood at n - period. Where does the one after it stand?",
        keys=lambda n, period: n - period + 2,
    ),
    Mistake(
        "you look at the token before the earlier one",
        "Shall the head find what came before it, or after it?",
        keys=lambda n, period: n - period - 1,
    ),
    Mistake(
        "you look at the token just before: that is another kind of head",
        "Which earlier token does an induction head look for?",
        keys=lambda n, period: n - 1,
    ),
    Mistake(
        "rows and columns are swapped",
        "Rows of the weights are queries. Which of the two tokens looks at the other?",
        pick=lambda weights, n, m: weights[m, n],
    ),
    Mistake(
        "you leave out the first token that comes again",
        "Which is the first token that has occurred before, if the text begins at 0?",
        queries=lambda seq, period: np.arange(period + 1, seq),
    ),
    Mistake(
        "you ask tokens that have not occurred before, too: their keys are counted from the end",
        "Where does token 0 find an earlier occurrence?",
        queries=lambda seq, period: np.arange(seq),
    ),
    Mistake(
        "you add up, where you should take the mean",
        "Should a text twice as long have twice the score?",
        average=np.sum,
    ),
    Mistake(
        "you divide by the number of all tokens, though only those of the second time are asked",
        "How many weights have you added up?",
        average=lambda chosen: chosen.sum() / (2 * len(chosen)),
    ),
]

_RNG = np.random.default_rng(19)


def _case(name, seq, period, is_edge=False):
    scores = np.exp(2 * _RNG.normal(size=(seq, seq)))
    return Case(name, {"weights": (scores / scores.sum(axis=1, keepdims=True)).round(3), "period": period}, is_edge)


EXERCISE = Exercise(
    induction_score,
    MISTAKES,
    cases=[_case("5 tokens twice", 10, 5), _case("4 tokens twice", 8, 4), _case("7 tokens twice", 14, 7)],
    examples=[
        {
            "weights": np.array(
                [
                    [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
                    [0.2, 0.3, 0.1, 0.2, 0.1, 0.1],
                    [0.1, 0.2, 0.4, 0.1, 0.1, 0.1],
                    [0.1, 0.1, 0.2, 0.3, 0.2, 0.1],
                    [0.1, 0.5, 0.2, 0.0, 0.1, 0.1],
                    [0.1, 0.0, 0.6, 0.1, 0.2, 0.0],
                ]
            ),
            "period": 4,
        }
    ],
    result="()",
    tried_on="{weights[0]} tokens, a text that comes again after {period}",
)
