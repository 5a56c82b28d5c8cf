"""Exercise `min_p`: the tokens that have at least a share of the probability of the likeliest."""

import numpy as np

from plainformer.exercises.generation.temperature import softmax
from plainformer.exercises.model import Case, Exercise, Mistake


def min_p(
    probabilities,
    share,
    *,
    threshold=lambda probabilities, share: share * probabilities.max(),
    keep=lambda probabilities, threshold: probabilities >= threshold,
    lay=lambda probabilities, kept: np.where(kept, probabilities, 0),
    divide=lambda kept: kept / (kept.sum() or 1),
):
    """Return the probabilities of the tokens that are kept, renormalised, and zeros for the others."""
    return divide(lay(probabilities, keep(probabilities, threshold(probabilities, share))))


def _nucleus(probabilities, share):
    """The smallest probability in the smallest set that has so much together."""
    descending = np.sort(probabilities)[::-1]
    return descending[np.cumsum(descending) - descending < share].min()


MISTAKES = [
    Mistake(
        "you compare each probability with the share itself, not with that share of the largest",
        "Of what is the share taken? What stays if all tokens are equally likely?",
        threshold=lambda probabilities, share: share,
    ),
    Mistake(
        "you take the share of the mean, not of the largest probability",
        "The mean of as many probabilities is always the same. Whose probability says how sure the model is?",
        threshold=lambda probabilities, share: share * probabilities.mean(),
    ),
    Mistake(
        "your threshold is what is left of the largest probability without the share",
        "At a share of 0 every token should stay. Does it?",
        threshold=lambda probabilities, share: (1 - share) * probabilities.max(),
    ),
    Mistake(
        "you add up the most likely tokens until they have the share together, which is top-p",
        "Each token is compared with the likeliest one alone. Where does a sum come in?",
        threshold=_nucleus,
    ),
    Mistake(
        "you keep the tokens below the threshold, and remove the likely ones",
        "Which tokens should stay, those above the threshold or those below?",
        keep=lambda probabilities, threshold: probabilities < threshold,
    ),
    Mistake(
        "a token that has exactly the share of the likeliest is removed",
        "It should have at least the share. Is exactly the share enough?",
        keep=lambda probabilities, threshold: probabilities > threshold,
    ),
    Mistake(
        "you leave out the tokens that are removed, so that nobody knows which token is which",
        "result[i] should belong to token i. What is the probability of a token that cannot be drawn?",
        lay=lambda probabilities, kept: probabilities[kept],
    ),
    Mistake(
        "you do not renormalise: what is kept does not sum to one",
        "To how much do your numbers sum? By what should they be divided?",
        divide=lambda kept: kept,
    ),
    Mistake(
        "you renormalise by a softmax of the probabilities, which makes them nearly equal",
        "One kept token is twice as likely as another. Should it still be so afterwards?",
        divide=[lambda kept: softmax(np.where(kept > 0, kept, -np.inf)), softmax],
    ),
]


def _case(name, probabilities, share, is_edge=False):
    return Case(name, {"probabilities": np.array(probabilities), "share": share}, is_edge)


EXERCISE = Exercise(
    min_p,
    MISTAKES,
    cases=[
        _case("four tokens to keep", [0.05, 0.33, 0.1, 0.25, 0.02, 0.25], 0.28),
        _case("a sure model", [0.03, 0.02, 0.8, 0.13, 0.02], 0.12),
        _case("an unsure model", [0.1, 0.14, 0.16, 0.13, 0.15, 0.11, 0.13, 0.08], 0.65),
        _case("a token with exactly the share", [0.125, 0.5, 0.25, 0.0625, 0.0625], 0.5, is_edge=True),
        _case("a share of 1", [0.25, 0.5, 0.0625, 0.1875], 1.0, is_edge=True),
    ],
    examples=[
        {"probabilities": np.array([0.1, 0.15, 0.5, 0.25]), "share": 0.4},
        {"probabilities": np.array([0.125, 0.5, 0.375]), "share": 0.25},
    ],
    result="(vocab_size,)",
    tried_on="{probabilities[0]} tokens, share = {share}",
)
