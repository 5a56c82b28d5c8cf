"""Exercise `batch_loss`: the mean loss of all tokens, of which devices have different numbers."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def batch_loss(
    losses,
    is_token,
    *,
    take=lambda losses, is_token: np.where(is_token > 0, losses, 0.0).sum(axis=1),
    count=lambda losses, is_token: is_token.sum(axis=1),
    join=lambda sums, counts: sums.sum() / counts.sum(),
):
    """Return the mean loss of the tokens of all devices."""
    return np.asarray(join(take(losses, is_token), count(losses, is_token)))


MISTAKES = [
    Mistake(
        "you take the mean on each device, and then the mean of those",
        "How much does a token count on a device that has few, beside one on a device that has many?",
        join=lambda sums, counts: (sums / counts).mean(),
    ),
    Mistake(
        "you sum the means of the devices",
        "With two devices whose losses are all 1, what should come out?",
        join=lambda sums, counts: (sums / counts).sum(),
    ),
    Mistake(
        "padding is counted as tokens: you divide by the number of places",
        "By how many tokens should the sum be divided?",
        count=lambda losses, is_token: np.full(len(losses), losses.shape[1]),
    ),
    Mistake(
        "the losses at padding are summed, too",
        "What stands at a place where there is no token, and should it count?",
        take=lambda losses, is_token: losses.sum(axis=1),
    ),
    Mistake(
        "you return the sum, and not the mean",
        "Should a batch that is twice as long have twice the loss?",
        join=lambda sums, counts: sums.sum(),
    ),
    Mistake(
        "you divide the sum by the number of devices",
        "A mean over tokens: how many tokens are there?",
        join=lambda sums, counts: sums.sum() / len(sums),
    ),
    Mistake(
        "you divide by the largest number of tokens that a device has",
        "A mean over tokens: how many tokens are there on all devices?",
        join=lambda sums, counts: sums.sum() / counts.max(),
    ),
    Mistake(
        "you use the first device alone",
        "What do the others have?",
        join=lambda sums, counts: sums[0] / counts[0],
    ),
]

_RNG = np.random.default_rng(1910)


def _case(name, counts, places, is_edge=False):
    is_token = (np.arange(places) < np.array(counts)[:, None]).astype(np.float64)
    return Case(name, {"losses": _RNG.uniform(0.5, 4, is_token.shape).round(2), "is_token": is_token}, is_edge)


EXERCISE = Exercise(
    batch_loss,
    MISTAKES,
    cases=[
        _case("two devices", [5, 2], 6),
        _case("three devices", [1, 7, 4], 8),
        _case("a device without a token", [3, 0, 1, 4], 5, is_edge=True),
    ],
    examples=[floats(losses=[[1, 1, 3], [4, 2, 2]], is_token=[[1, 1, 1], [1, 0, 0]])],
    result="()",
    tried_on="{losses[0]} devices with {losses[1]} places each",
)
