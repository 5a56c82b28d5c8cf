"""Exercise `preference_loss`: how surprising a listener's choices are to a model and its reference."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _softplus(x):
    """The logarithm of 1 + exp(x), for any x."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def preference_loss(
    chosen,
    rejected,
    reference_chosen,
    reference_rejected,
    beta,
    *,
    ratio=lambda own, reference: own - reference,
    margin=lambda plus, minus: plus - minus,
    price=lambda margin, beta: beta * margin,
    surprise=lambda margin: _softplus(-margin),
    average=lambda surprises: surprises.mean(),
):
    """Return the mean surprise at the preferences, in nats."""
    plus, minus = ratio(chosen, reference_chosen), ratio(rejected, reference_rejected)
    return np.asarray(average(surprise(price(margin(plus, minus), beta))))


def _overflowing(margin):
    return np.log(1 + np.exp(-margin))


MISTAKES = [
    Mistake(
        "chosen and rejected are swapped: the loss falls when the wrong text becomes likelier",
        "Which of the two texts should become likelier, compared with the reference?",
        margin=lambda plus, minus: minus - plus,
    ),
    Mistake(
        "the reference's sign is wrong: its log-probabilities are added",
        "If model and reference agree, how large should the difference of the two be?",
        ratio=lambda own, reference: own + reference,
    ),
    Mistake(
        "the reference is missing",
        "A text that was likely from the start has not been made likelier. What tells the two apart?",
        ratio=lambda own, reference: own,
    ),
    Mistake(
        "the rejected text is missing",
        "The listener chose between two. With what is the first one compared?",
        margin=lambda plus, minus: plus,
    ),
    Mistake(
        "beta is missing",
        "What says how much reward a nat of distance is worth?",
        price=lambda margin, beta: margin,
    ),
    Mistake(
        "you divide by beta, where you should multiply by it",
        "The reward is beta times a logarithm. Where does beta stand once the equation is turned round?",
        price=lambda margin, beta: margin / beta,
    ),
    Mistake(
        "the logarithm is missing: you return a probability",
        "How surprising is something that has probability p?",
        surprise=lambda margin: -np.exp(-_softplus(-margin)),
    ),
    Mistake(
        "the sign is missing: you return the logarithm of the probability",
        "Should the loss be small or large where the model agrees with the listener?",
        surprise=lambda margin: -_softplus(-margin),
    ),
    Mistake(
        "the sigmoid is missing: your loss is minus the margin itself",
        "How large may a probability be? Which function turns any number into one?",
        surprise=lambda margin: -margin,
    ),
    Mistake(
        "you take the sum over the pairs, where you should take their mean",
        "Should a batch with twice as many pairs have twice the loss?",
        average=lambda surprises: surprises.sum(),
    ),
    Mistake(
        "your exponential overflows where the margin is far below 0",
        "What is exp(1000)? Which function of JAX or NumPy gives log(1 + exp(x)) without computing exp(x)?",
        surprise=_overflowing,
    ),
]

_RNG = np.random.default_rng(2305)
NAMES = ("chosen", "rejected", "reference_chosen", "reference_rejected")


def _case(name, pairs, beta, is_edge=False, times=1.0):
    found = draw(_RNG, 1, **dict.fromkeys(NAMES, (pairs,)))
    numbers = {each: (times * (2 * array - 9)).round(1) for each, array in found.items()}
    return Case(name, numbers | {"beta": beta}, is_edge)


EXERCISE = Exercise(
    preference_loss,
    MISTAKES,
    cases=[
        _case("5 pairs", 5, 0.4),
        _case("3 pairs, a larger beta", 3, 1.7),
        _case("log-probabilities in the thousands", 4, 2.0, is_edge=True, times=1000.0),
    ],
    examples=[
        {
            "chosen": np.array([-2.0, -3]),
            "rejected": np.array([-5.0, -1]),
            "reference_chosen": np.array([-3.0, -3]),
            "reference_rejected": np.array([-4.0, -2]),
            "beta": 0.5,
        },
        {
            "chosen": np.array([-5000.0]),
            "rejected": np.array([-3000.0]),
            "reference_chosen": np.array([-4000.0]),
            "reference_rejected": np.array([-4000.0]),
            "beta": 0.5,
        },
    ],
    result="()",
    tried_on="{chosen[0]} pairs",
)
