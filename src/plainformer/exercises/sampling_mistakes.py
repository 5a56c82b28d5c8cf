"""The mistakes in temperature and in top-p that the exercises know by name."""

import numpy as np

from plainformer.exercises.exercise import Mistake


def share_at_zero(logits):
    """What is most likely shares everything."""
    return (logits == logits.max()) / (logits == logits.max()).sum()


def needed(descending, p):
    """Whether a token is needed: those likelier than it have less than p together."""
    return np.cumsum(descending) - descending < p


def _softmax(logits):
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


def _first_and(kept):
    """Keep the most likely token, too."""
    return kept | (np.arange(len(kept)) == 0)


def _or_none(descending, p):
    """Shift the tokens to remove by one, and let the first be removed, too."""
    remove = np.cumsum(descending) > p
    return ~np.concatenate([remove[:1], remove[:-1]])


TEMPERATURE = [
    Mistake(
        "scale",
        "you multiply the logits by the temperature, where you should divide by it",
        "Should a high temperature make the distribution flatter or sharper?",
        lambda logits, temperature: logits * temperature,
    ),
    Mistake(
        "scale",
        "you divide by the square of the temperature",
        "By how much should the gap between two logits shrink at temperature 2?",
        lambda logits, temperature: logits / temperature**2,
    ),
    Mistake(
        "scale",
        "you divide by the root of the temperature",
        "By how much should the gap between two logits shrink at temperature 2?",
        lambda logits, temperature: logits / temperature**0.5,
    ),
    Mistake(
        "scale",
        "the temperature plays no part: your result is the softmax of the bare logits",
        "Are the logits divided by the temperature before the softmax, and is the quotient what you go on with?",
        lambda logits, temperature: logits,
    ),
    Mistake(
        "scale",
        "you divide the probabilities by the temperature, after the softmax",
        "To how much do your numbers sum? What do you have to divide before it is exponentiated?",
        {
            "scale": lambda logits, temperature: logits,
            "finish": lambda probabilities, temperature: probabilities / temperature,
        },
    ),
    Mistake(
        "scale",
        "you divide the probabilities by the temperature, and take a second softmax of them",
        "How many times should exp be taken, and of what?",
        lambda logits, temperature: _softmax(logits) / temperature,
    ),
    Mistake(
        "share",
        "you do not divide by the sum",
        "To how much should probabilities sum?",
        lambda exponentials: exponentials,
        {"share": lambda exponentials: exponentials, "exponentiate": np.exp},
    ),
    Mistake(
        "exponentiate",
        "at a small temperature exp overflows",
        "A softmax does not change if a number is taken off every logit. Which one keeps exp within bounds?",
        np.exp,
    ),
    Mistake(
        "at_zero",
        "at temperature 0 you divide by zero, and nothing is a number (nan)",
        "Nothing can be divided by 0, but what does the distribution come to as the temperature falls towards it?",
        lambda logits: np.full(logits.shape, np.nan),
    ),
    Mistake(
        "at_zero",
        "at temperature 0 you give everything to a single token, although two are equally likely",
        "At every other temperature, what are the probabilities of two tokens with the same logit?",
        lambda logits: np.eye(len(logits))[logits.argmax()],
        lambda logits: np.eye(len(logits))[::-1][logits[::-1].argmax()],
    ),
    Mistake(
        "at_zero",
        "at temperature 0 you return the softmax of the bare logits, as if the temperature were 1",
        "What does the distribution come to as the temperature falls towards 0?",
        _softmax,
    ),
    Mistake(
        "at_zero",
        "at temperature 0 all tokens are equally likely, which they should be at an infinite temperature",
        "As the temperature falls towards 0, does the distribution become flatter or sharper?",
        lambda logits: np.full(logits.shape, 1 / len(logits)),
    ),
]
TOP_P = [
    Mistake(
        "keep",
        "you keep one token too few: yours have at most p together",
        "Together they should have at least p. Does the token that takes the sum past p stay?",
        lambda descending, p: np.cumsum(descending) <= p,
        lambda descending, p: _first_and(np.cumsum(descending) <= p),
    ),
    Mistake(
        "keep",
        "you keep one token too many",
        "When those before a token have p together already, is it needed?",
        lambda descending, p: np.cumsum(descending) - descending - np.insert(descending[:-1], 0, 0) < p,
    ),
    Mistake(
        "keep",
        "where the tokens have exactly p together, you keep one more",
        "They should have at least p together. Is exactly p enough?",
        lambda descending, p: np.cumsum(descending) - descending <= p,
    ),
    Mistake(
        "keep",
        "you compare each probability with p by itself",
        "It is their sum that should reach p. How is it made, starting from the most likely?",
        lambda descending, p: descending >= p,
        lambda descending, p: _first_and(descending >= p),
        lambda descending, p: descending >= 1 - p,
        lambda descending, p: _first_and(descending >= 1 - p),
    ),
    Mistake(
        "keep",
        "nothing is left where the most likely token alone has more than p",
        "How many tokens have to be kept at least? Does your cut leave the first one?",
        _or_none,
        {"keep": _or_none, "share": lambda kept: kept / max(kept.sum(), 1e-9)},
    ),
    Mistake(
        "order",
        "you keep the unlikely tokens: you sort from the smallest probability up",
        "np.argsort sorts in ascending order. Which tokens should be the first to stay?",
        np.argsort,
    ),
    Mistake(
        "lay",
        "you find out in sorted order who stays, but apply that to the tokens in the vocabulary's order",
        "Your k-th answer is about the k-th likeliest token. Which id does that have?",
        lambda probabilities, order, kept: np.where(kept, probabilities, 0),
        lambda probabilities, order, kept: np.where(kept[order], probabilities, 0),
    ),
    Mistake(
        "finish",
        "your result is in sorted order, not in the vocabulary's",
        "result[i] should belong to token i. How do you undo a sort?",
        lambda result, order: result[order],
        lambda result, order: result[order][result[order] > 0],
    ),
    Mistake(
        "finish",
        "you leave out the tokens that are removed, so that nobody knows which token is which",
        "result[i] should belong to token i. What is the probability of a token that cannot be drawn?",
        lambda result, order: result[result > 0],
    ),
    Mistake(
        "share",
        "you do not renormalise: what is kept does not sum to one",
        "To how much do your numbers sum? By what should they be divided?",
        lambda kept: kept,
    ),
    Mistake(
        "share",
        "you renormalise by a softmax of the probabilities, which makes them nearly equal",
        "One kept token is twice as likely as another. Should it still be so afterwards?",
        lambda kept: _softmax(np.where(kept > 0, kept, -np.inf)),
        _softmax,
    ),
]
