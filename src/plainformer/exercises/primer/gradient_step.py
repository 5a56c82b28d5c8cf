"""Exercise `gradient_step`: one step of gradient descent on logits, worked out by hand."""

import numpy as np

from plainformer.exercises.generation.temperature import softmax
from plainformer.exercises.model import Case, Exercise, Mistake


def frequencies(targets, size):
    """Return how often each token came, as a share."""
    return np.bincount(targets, minlength=size) / len(targets)


def gradient_step(
    logits,
    targets,
    learning_rate,
    *,
    expect=softmax,
    observe=frequencies,
    move=lambda logits, gradient, learning_rate, count: logits - learning_rate * gradient,
):
    """Return the logits after one step down the gradient of the mean surprise."""
    gradient = expect(logits) - observe(targets, len(logits))
    return move(logits, gradient, learning_rate, len(targets))


def _without_largest(logits):
    return np.exp(logits) / np.exp(logits).sum()


MISTAKES = [
    Mistake(
        "you go up the gradient, where you should go down: what came becomes less likely",
        "Which way must a logit move if its token came more often than you expected?",
        move=lambda logits, gradient, learning_rate, count: logits + learning_rate * gradient,
    ),
    Mistake(
        "you take the gradient of the sum of the surprises, where the loss is their mean",
        "Should a text twice as long make the step twice as long?",
        move=lambda logits, gradient, learning_rate, count: logits - learning_rate * count * gradient,
    ),
    Mistake(
        "the learning rate plays no part: your step is the whole gradient",
        "By what is the gradient multiplied before it is subtracted?",
        move=lambda logits, gradient, learning_rate, count: logits - gradient,
    ),
    Mistake(
        "you return the step, not the logits after it",
        "From which numbers is the step subtracted?",
        move=[
            lambda logits, gradient, learning_rate, count: -learning_rate * gradient,
            lambda logits, gradient, learning_rate, count: learning_rate * gradient,
        ],
    ),
    Mistake(
        "you return the gradient alone",
        "What is done with the gradient in a step of gradient descent?",
        move=lambda logits, gradient, learning_rate, count: gradient,
    ),
    Mistake(
        "you compare the logits themselves with the frequencies: the softmax is missing",
        "Do logits sum to one, as frequencies do? What makes probabilities of them?",
        expect=lambda logits: logits,
    ),
    Mistake(
        "you only raise the logits of what came: the softmax that pushes the others down is missing",
        "If every token came as often as expected, should any logit move?",
        expect=lambda logits: np.zeros(len(logits)),
    ),
    Mistake(
        "each token counts once in your frequencies, however often it came",
        "If a token came three times in four, what is its share?",
        observe=lambda targets, size: (np.bincount(targets, minlength=size) > 0) / len(targets),
    ),
    Mistake(
        "you go by a single target, the first or the last",
        "The loss is a mean over all targets. Which of them have a part in its gradient?",
        observe=[lambda targets, size: np.eye(size)[targets[0]], lambda targets, size: np.eye(size)[targets[-1]]],
    ),
    Mistake(
        "large logits overflow: exp(1000) is infinite",
        "A softmax does not change if a number is taken off every logit. Which one keeps exp within bounds?",
        expect=_without_largest,
    ),
]


def _case(name, logits, targets, learning_rate, is_edge=False):
    given = {"logits": np.array(logits, float), "targets": np.array(targets), "learning_rate": learning_rate}
    return Case(name, given, is_edge)


EXERCISE = Exercise(
    gradient_step,
    MISTAKES,
    cases=[
        _case("5 logits, 7 targets", [0.5, -1.2, 2.0, 0.3, -0.4], [2, 0, 0, 4, 2, 0, 1], 0.3),
        _case("3 logits, 4 targets", [1.5, 0.2, -0.7], [1, 1, 2, 1], 2.0),
        _case("a token that never came", [0.0, 0.0, 0.0, 0.0], [3, 3], 0.7, is_edge=True),
        _case("logits near 1000", [1000.0, 1001.0, 999.0], [0, 2], 0.5, is_edge=True),
    ],
    examples=[
        {"logits": np.array([0.0, 0.0]), "targets": np.array([0, 0, 0, 1]), "learning_rate": 0.5},
        {"logits": np.array([1.0, 0.0, 2.0]), "targets": np.array([1, 2, 2]), "learning_rate": 0.5},
        {"logits": np.array([1000.0, 1000.0]), "targets": np.array([0]), "learning_rate": 0.5},
    ],
    result="(vocab_size,)",
    tried_on="{logits[0]} logits, {targets[0]} targets",
)
