"""Exercise `router`: the gates of all experts for each token, zero for those that are not chosen."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def _largest(scores, num_chosen):
    """Whether each expert is among those of its token with the largest scores."""
    return np.argsort(np.argsort(-scores, axis=-1), axis=-1) < num_chosen


def _largest_of_all(scores, num_chosen):
    ranks = np.argsort(np.argsort(-scores, axis=None))
    return ranks.reshape(scores.shape) < num_chosen * len(scores)


def _softmax(scores, axis=-1, where=True):
    powers = np.where(where, np.exp(scores - scores.max(axis=axis, keepdims=True)), 0.0)
    return powers / powers.sum(axis=axis, keepdims=True)


def router(scores, num_chosen, *, pick=_largest, gates=lambda scores, chosen: _softmax(scores, where=chosen)):
    """Return the gate of each expert for each token."""
    return gates(scores, pick(scores, num_chosen))


MISTAKES = [
    Mistake(
        "the softmax is over all experts, and the gates of the chosen ones are not divided by their sum",
        "What do the gates of one token sum to?",
        gates=lambda scores, chosen: _softmax(scores) * chosen,
    ),
    Mistake(
        "every expert has a gate: those that are not chosen count as well",
        "How many experts should work on a token?",
        pick=lambda scores, num_chosen: np.ones(scores.shape, bool),
    ),
    Mistake(
        "you choose the largest scores of the whole text, so that tokens have more experts or fewer",
        "How many gates above zero has each row?",
        pick=_largest_of_all,
    ),
    Mistake(
        "you choose the experts with the smallest scores",
        "Which expert should work on a token, if its score is the largest?",
        pick=lambda scores, num_chosen: _largest(-scores, num_chosen),
    ),
    Mistake(
        "only the best expert of each token is chosen",
        "How many experts does the second argument ask for?",
        pick=lambda scores, num_chosen: _largest(scores, 1),
    ),
    Mistake(
        "the chosen experts have equal gates, whatever their scores are",
        "By what would the router learn, if scores changed no gate?",
        gates=lambda scores, chosen: chosen / chosen.sum(axis=-1, keepdims=True),
    ),
    Mistake(
        "you take the softmax twice: of the weights of all experts once more, among those that are chosen",
        "If one score is larger than another by 1, by which factor should its gate be larger?",
        gates=lambda scores, chosen: _softmax(_softmax(scores), where=chosen),
    ),
]

EXERCISE = Exercise(
    router,
    MISTAKES,
    cases=[
        Case(
            "five tokens, four experts, two of them at work",
            draw(np.random.default_rng(7), 2, scores=(5, 4)) | {"num_chosen": 2},
        ),
        Case(
            "three tokens, seven experts, three of them at work",
            draw(np.random.default_rng(8), 2, scores=(3, 7)) | {"num_chosen": 3},
        ),
        Case("all experts at work", draw(np.random.default_rng(9), 2, scores=(4, 3)) | {"num_chosen": 3}, is_edge=True),
    ],
    examples=[
        floats(scores=[[5, 4, 3], [1, 0, 2]]) | {"num_chosen": 2},
        floats(scores=[[1, 0, 2], [0, 3, 1]]) | {"num_chosen": 2},
    ],
    result="(seq, experts)",
    tried_on="scores of shape {scores}",
)
