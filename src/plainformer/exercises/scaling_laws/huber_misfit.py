"""Exercise `huber_misfit`: how far the losses of some trainings are from a law, by Huber's loss of their logarithms."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def huber_misfit(
    losses,
    expected,
    threshold,
    *,
    compare=lambda losses, expected: np.log(expected) - np.log(losses),
    near=lambda size: size**2 / 2,
    far=lambda size, threshold: threshold * (size - threshold / 2),
    is_near=lambda size, threshold: size <= threshold,
    total=lambda each: each.sum(),
):
    """Return the sum over all trainings."""
    size = np.abs(compare(losses, expected))
    return np.asarray(total(np.where(is_near(size, threshold), near(size), far(size, threshold))))


MISTAKES = [
    Mistake(
        "the logarithms are missing: you compare the losses themselves",
        "Should an error of a hundredth count as much at a loss of 8 as at a loss of 0.5?",
        compare=lambda losses, expected: expected - losses,
    ),
    Mistake(
        "the half is missing: near zero you return the whole square",
        "Do both pieces have the same value at the threshold?",
        near=lambda size: size**2,
    ),
    Mistake(
        "half the threshold is not taken off: at the threshold your function jumps",
        "Do both pieces have the same value at the threshold?",
        far=lambda size, threshold: threshold * size,
    ),
    Mistake(
        "beyond the threshold you do not multiply by it",
        "Do both pieces have the same slope at the threshold?",
        far=lambda size, threshold: size - threshold / 2,
    ),
    Mistake(
        "all errors are squared: one training that went wrong then rules the fit",
        "What does an error far beyond the threshold count?",
        far=lambda size, threshold: size**2 / 2,
    ),
    Mistake(
        "the two pieces are swapped",
        "Which errors are to be squared, the small ones or the large ones?",
        is_near=lambda size, threshold: size > threshold,
    ),
    Mistake(
        "you take the mean, where you should take the sum",
        "What did a mean, which is small, do to the search of Hoffmann and others?",
        total=lambda each: each.mean(),
    ),
]

EXERCISE = Exercise(
    huber_misfit,
    MISTAKES,
    cases=[
        Case(
            "5 trainings",
            floats(losses=[3.0, 2.0, 4.0, 1.5, 2.5], expected=[3.2, 2.9, 1.1, 1.4, 2.6]) | {"threshold": 0.2},
        ),
        Case("3 trainings", floats(losses=[0.7, 0.6, 0.5], expected=[0.9, 0.2, 0.55]) | {"threshold": 0.4}),
        Case(
            "a law that all trainings are on", floats(losses=[2.0, 3.0], expected=[2.0, 3.0]) | {"threshold": 0.3}, True
        ),
    ],
    examples=[
        {"losses": np.array([1.0, 1.0]), "expected": np.array([np.e, 1.1]), "threshold": 0.5},
        {"losses": np.array([1.0]), "expected": np.array([1.1]), "threshold": 0.5},
    ],
    result="()",
    tried_on="{losses[0]} trainings",
)
