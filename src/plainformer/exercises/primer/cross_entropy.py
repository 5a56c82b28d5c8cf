"""Exercise `cross_entropy`: the mean surprise of a model at what came."""

import numpy as np

from plainformer.exercises.model import Exercise, Mistake
from plainformer.exercises.primer._loss_cases import loss_cases, loss_examples


def log_softmax(logits, axis=1):
    """Return log-probabilities; the largest logit is taken off first, so that nothing overflows."""
    logits = logits - logits.max(axis=axis, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=axis, keepdims=True))


def of_each_row(log_probs, targets):
    """Return one number per row: that of its own target."""
    return log_probs[np.arange(len(targets)), targets]


def mean(numbers, shape):
    """Return their mean; nan if there are none."""
    return numbers.sum() / np.float64(numbers.size)


def cross_entropy(
    logits,
    targets,
    *,
    log_probs=log_softmax,
    pick=of_each_row,
    average=mean,
    finish=lambda surprise: surprise,
):
    """Return the mean surprise at the targets, in nats."""
    return np.asarray(finish(-average(pick(log_probs(logits), targets), logits.shape)))


def _is_hit(logits, targets):
    return (logits.argmax(axis=1) == targets).astype(float)


# About the surprise at a target, for all exercises that take its mean.
SURPRISE = [
    Mistake(
        "you add the surprises up, where you should take their mean",
        "Should a text twice as long have twice the loss?",
        average=lambda numbers, shape: numbers.sum(),
    ),
    Mistake(
        "your loss is in bits: you take logarithms to base 2",
        "A nat is the surprise at probability 1/e. Which logarithm makes it 1?",
        finish=lambda surprise: surprise / np.log(2),
    ),
    Mistake(
        "you take logarithms to base 10",
        "A nat is the surprise at probability 1/e. Which logarithm makes it 1?",
        finish=lambda surprise: surprise / np.log(10),
    ),
    Mistake(
        "the sign is missing: your loss is negative",
        "The logarithm of a probability is at most 0. What makes a surprise of it?",
        finish=lambda surprise: -surprise,
    ),
    Mistake(
        "you return the perplexity, which is exp of the loss",
        "What is the loss of a model that is always certain and always right, 0 or 1?",
        finish=np.exp,
    ),
    Mistake(
        "the softmax is missing: you use logits as if they were probabilities, or logarithms of them",
        "Do the numbers of a row of logits sum to one? What makes probabilities of them?",
        log_probs=[np.log, lambda logits: logits],
    ),
    Mistake(
        "the logarithm is missing: you average probabilities",
        "What is the surprise at a token of probability 1, and what should it be?",
        log_probs=lambda logits: np.exp(log_softmax(logits)),
    ),
    Mistake(
        "your softmax runs over the tokens of the text, axis 0, not over the vocabulary",
        "A row holds the logits of everything that may come next. Along which axis should probabilities sum to one?",
        log_probs=lambda logits: log_softmax(logits, axis=0),
    ),
    Mistake(
        "your softmax runs over the whole table, so that all rows share one sum",
        "To how much should the probabilities of one row sum? Is an axis missing?",
        log_probs=lambda logits: log_softmax(logits, axis=None),
    ),
    Mistake(
        "large logits overflow: exp(1000) is infinite",
        "A softmax does not change if a number is taken off every logit of a row. Which one keeps exp within bounds?",
        log_probs=[
            lambda logits: np.log(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)),
            lambda logits: logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)),
        ],
    ),
    Mistake(
        "you take the columns of all targets from every row: log_probs[:, targets] is a table",
        "Row n goes with target n alone. Which two index arrays pick one number from each row?",
        pick=lambda log_probs, targets: log_probs[:, targets],
    ),
    Mistake(
        "the targets play no part: you take the most likely token of each row",
        "Is a model surprised at what it expected, or at what came?",
        pick=lambda log_probs, targets: log_probs.max(axis=1),
    ),
]
CROSS_ENTROPY = [
    Mistake(
        "you average over all entries of the table, where there is one surprise per token",
        "How many tokens came? By that number the sum is divided, so where does vocab_size come in?",
        {"pick": lambda log_probs, targets: log_probs},
        {"average": lambda numbers, shape: numbers.sum() / np.prod(shape)},
    ),
    Mistake(
        "you count how often the most likely token is the target: that is accuracy",
        "Say the target has probability 0.4 in one model and 0.1 in the other, and is likeliest in neither. "
        "Which is better, and what does your number say?",
        pick=[
            lambda log_probs, targets: -_is_hit(log_probs, targets),
            lambda log_probs, targets: _is_hit(log_probs, targets) - 1,
        ],
    ),
]

EXERCISE = Exercise(
    cross_entropy,
    [*SURPRISE, *CROSS_ENTROPY],
    cases=loss_cases("targets", (5, 7), (4, 3), (3, 4), (1, 3)),
    examples=loss_examples("targets"),
    result="()",
    tried_on="{logits[0]} tokens, a vocabulary of {logits[1]}",
)
