"""Exercise `top_p`: the most likely tokens that have at least p together."""

import numpy as np

from plainformer.exercises.generation.temperature import softmax
from plainformer.exercises.model import Case, Exercise, Mistake


def top_p(
    probabilities,
    p,
    *,
    order=lambda probabilities: np.argsort(-probabilities),
    # A token is needed if those likelier than it have less than p together.
    keep=lambda descending, p: np.cumsum(descending) - descending < p,
    lay=lambda probabilities, order, kept: np.where(kept[np.argsort(order)], probabilities, 0),
    share=lambda kept: kept / kept.sum(),
    finish=lambda result, order: result,
):
    """Return the probabilities of the tokens that are kept, renormalised, and zeros for the others."""
    ranks = order(probabilities)
    kept = keep(probabilities[ranks], p)
    return finish(share(lay(probabilities, ranks, kept)), ranks)


def _first_and(kept):
    """Keep the most likely token, too."""
    return kept | (np.arange(len(kept)) == 0)


def _or_none(descending, p):
    """Shift the tokens to remove by one, and let the first be removed, too."""
    remove = np.cumsum(descending) > p
    return ~np.concatenate([remove[:1], remove[:-1]])


MISTAKES = [
    Mistake(
        "you keep one token too few: yours have at most p together",
        "Together they should have at least p. Does the token that takes the sum past p stay?",
        keep=[
            lambda descending, p: np.cumsum(descending) <= p,
            lambda descending, p: _first_and(np.cumsum(descending) <= p),
        ],
    ),
    Mistake(
        "you keep one token too many",
        "When those before a token have p together already, is it needed?",
        keep=lambda descending, p: np.cumsum(descending) - descending - np.insert(descending[:-1], 0, 0) < p,
    ),
    Mistake(
        "where the tokens have exactly p together, you keep one more",
        "They should have at least p together. Is exactly p enough?",
        keep=lambda descending, p: np.cumsum(descending) - descending <= p,
    ),
    Mistake(
        "you compare each probability with p by itself",
        "It is their sum that should reach p. How is it made, starting from the most likely?",
        keep=[
            lambda descending, p: descending >= p,
            lambda descending, p: _first_and(descending >= p),
            lambda descending, p: descending >= 1 - p,
            lambda descending, p: _first_and(descending >= 1 - p),
        ],
    ),
    Mistake(
        "nothing is left where the most likely token alone has more than p",
        "How many tokens have to be kept at least? Does your cut leave the first one?",
        {"keep": _or_none},
        {"keep": _or_none, "share": lambda kept: kept / max(kept.sum(), 1e-9)},
    ),
    Mistake(
        "you keep the unlikely tokens: you sort from the smallest probability up",
        "np.argsort sorts in ascending order. Which tokens should be the first to stay?",
        order=np.argsort,
    ),
    Mistake(
        "you find out in sorted order who stays, but apply that to the tokens in the vocabulary's order",
        "Your k-th answer is about the k-th likeliest token. Which id does that have?",
        lay=[
            lambda probabilities, order, kept: np.where(kept, probabilities, 0),
            lambda probabilities, order, kept: np.where(kept[order], probabilities, 0),
        ],
    ),
    Mistake(
        "your result is in sorted order, not in the vocabulary's",
        "result[i] should belong to token i. How do you undo a sort?",
        finish=[lambda result, order: result[order], lambda result, order: result[order][result[order] > 0]],
    ),
    Mistake(
        "you leave out the tokens that are removed, so that nobody knows which token is which",
        "result[i] should belong to token i. What is the probability of a token that cannot be drawn?",
        finish=lambda result, order: result[result > 0],
    ),
    Mistake(
        "you do not renormalise: what is kept does not sum to one",
        "To how much do your numbers sum? By what should they be divided?",
        share=lambda kept: kept,
    ),
    Mistake(
        "you renormalise by a softmax of the probabilities, which makes them nearly equal",
        "One kept token is twice as likely as another. Should it still be so afterwards?",
        share=[lambda kept: softmax(np.where(kept > 0, kept, -np.inf)), softmax],
    ),
]


def _case(name, probabilities, p, is_edge=False):
    return Case(name, {"probabilities": np.array(probabilities), "p": p}, is_edge)


EXERCISE = Exercise(
    top_p,
    MISTAKES,
    cases=[
        _case("three tokens to keep", [0.05, 0.3, 0.1, 0.25, 0.08, 0.22], 0.72),
        _case("a token that is likelier than p", [0.12, 0.08, 0.45, 0.25, 0.1], 0.2),
        _case("five tokens to keep", [0.02, 0.14, 0.31, 0.03, 0.2, 0.06, 0.17, 0.07], 0.85),
        _case("tokens that have p together exactly", [0.0625, 0.5, 0.1875, 0.25], 0.75, is_edge=True),
        _case("p = 1", [0.25, 0.5, 0.0625, 0.1875], 1.0, is_edge=True),
    ],
    examples=[
        {"probabilities": np.array([0.1, 0.15, 0.5, 0.25]), "p": 0.6},
        {"probabilities": np.array([0.15, 0.6, 0.25]), "p": 0.2},
        {"probabilities": np.array([0.125, 0.5, 0.375]), "p": 0.5},
    ],
    result="(vocab_size,)",
    tried_on="{probabilities[0]} tokens, p = {p}",
)
