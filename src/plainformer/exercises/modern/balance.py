"""Exercise `balance`: the balance loss of a router, from its weights and from which experts were chosen."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def balance(
    weights,
    chosen,
    *,
    shares=lambda weights, chosen: chosen.sum(axis=0) / chosen.sum(),
    means=lambda weights, chosen: weights.mean(axis=0),
    join=lambda shares, means, weights, chosen: (shares * means).sum(),
    scale=lambda num_experts: num_experts,
):
    """Return the sum over experts of share times mean weight, times the number of experts."""
    both = shares(weights, chosen), means(weights, chosen)
    return np.asarray(scale(weights.shape[1]) * join(*both, weights, chosen), np.float64)


MISTAKES = [
    Mistake(
        "you use the counts alone: the share of each expert stands where its mean weight should",
        "Along what should a gradient flow, if counts have none?",
        means=lambda weights, chosen: chosen.sum(axis=0) / chosen.sum(),
    ),
    Mistake(
        "you use the weights alone: nothing depends on which experts were chosen",
        "Which number says how much work an expert really has?",
        shares=lambda weights, chosen: weights.mean(axis=0),
    ),
    Mistake(
        "the number of experts is missing as a factor",
        "Is the loss 1, if all experts have equal shares?",
        scale=lambda num_experts: 1,
    ),
    Mistake(
        "the counts are divided by the number of tokens, where they should be by the number of choices",
        "What do the shares of all experts sum to?",
        shares=lambda weights, chosen: chosen.mean(axis=0),
    ),
    Mistake(
        "you multiply token by token and then average, where the two means should be taken first",
        "Does the loss still compare how often an expert is chosen in the whole text?",
        join=lambda shares, means, weights, chosen: (weights * chosen).sum() / chosen.sum(),
    ),
    Mistake(
        "the mean is over the weights of the chosen experts alone, with zeros for all others",
        "Which weights should fall where an expert has too much, only those of the tokens that it got?",
        means=lambda weights, chosen: (weights * chosen).mean(axis=0),
    ),
]


def _inputs(rng: np.random.Generator, seq: int, experts: int, per_token: int) -> dict:
    """Weights that sum to one for each token, and which of them are the largest."""
    powers = np.exp(rng.normal(size=(seq, experts)).round(2))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return {"weights": weights, "chosen": np.argsort(np.argsort(-weights, axis=1), axis=1) < per_token}


RNG = np.random.default_rng(12)

EXERCISE = Exercise(
    balance,
    MISTAKES,
    cases=[
        Case("seven tokens, four experts, two of them at work", _inputs(RNG, 7, 4, 2)),
        Case("five tokens, six experts, three of them at work", _inputs(RNG, 5, 6, 3)),
        Case("one token", _inputs(RNG, 1, 3, 2), is_edge=True),
    ],
    examples=[
        {
            "weights": np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]),
            "chosen": np.array([[True, True, False], [False, True, True]]),
        }
    ],
    result="()",
    tried_on="weights of shape {weights}",
)
