"""The mistakes in cross-entropy and in the shift that the exercises know by name.

The first list is about the surprise at a target and serves both exercises.
"""

import numpy as np

from plainformer.exercises.exercise import Mistake


def log_softmax(logits, axis=1):
    """Log-probabilities; the largest logit is taken off first, so that nothing overflows."""
    logits = logits - logits.max(axis=axis, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=axis, keepdims=True))


def of_each_row(log_probs, targets):
    """One number per row: that of its own target."""
    return log_probs[np.arange(len(targets)), targets]


def mean(numbers, shape):
    """Their mean; not a number if there are none."""
    return numbers.sum() / np.float64(numbers.size)


def _softmax(logits):
    return np.exp(log_softmax(logits))


def _is_hit(logits, targets):
    return (logits.argmax(axis=1) == targets).astype(float)


SURPRISE = [
    Mistake(
        "average",
        "you add the surprises up, where you should take their mean",
        "Should a text twice as long have twice the loss?",
        lambda numbers, shape: numbers.sum(),
    ),
    Mistake(
        "finish",
        "your loss is in bits: you take logarithms to base 2",
        "A nat is the surprise at probability 1/e. Which logarithm makes it 1?",
        lambda surprise: surprise / np.log(2),
    ),
    Mistake(
        "finish",
        "you take logarithms to base 10",
        "A nat is the surprise at probability 1/e. Which logarithm makes it 1?",
        lambda surprise: surprise / np.log(10),
    ),
    Mistake(
        "finish",
        "the sign is missing: your loss is negative",
        "The logarithm of a probability is at most 0. What makes a surprise of it?",
        lambda surprise: -surprise,
    ),
    Mistake(
        "finish",
        "you return the perplexity, which is exp of the loss",
        "What is the loss of a model that is always certain and always right, 0 or 1?",
        np.exp,
    ),
    Mistake(
        "log_probs",
        "the softmax is missing: you use logits as if they were probabilities, or logarithms of them",
        "Do the numbers of a row of logits sum to one? What makes probabilities of them?",
        np.log,
        lambda logits: logits,
    ),
    Mistake(
        "log_probs",
        "the logarithm is missing: you average probabilities",
        "What is the surprise at a token of probability 1, and what should it be?",
        _softmax,
    ),
    Mistake(
        "log_probs",
        "your softmax runs over the tokens of the text, axis 0, not over the vocabulary",
        "A row holds the logits of everything that may come next. Along which axis should probabilities sum to one?",
        lambda logits: log_softmax(logits, axis=0),
    ),
    Mistake(
        "log_probs",
        "your softmax runs over the whole table, so that all rows share one sum",
        "To how much should the probabilities of one row sum? Is an axis missing?",
        lambda logits: log_softmax(logits, axis=None),
    ),
    Mistake(
        "log_probs",
        "large logits overflow: exp(1000) is infinite",
        "A softmax does not change if a number is taken off every logit of a row. Which one keeps exp within bounds?",
        lambda logits: np.log(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)),
        lambda logits: logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)),
    ),
    Mistake(
        "pick",
        "you take the columns of all targets from every row: log_probs[:, targets] is a table",
        "Row n goes with target n alone. Which two index arrays pick one number from each row?",
        lambda log_probs, targets: log_probs[:, targets],
    ),
    Mistake(
        "pick",
        "the targets play no part: you take the most likely token of each row",
        "Is a model surprised at what it expected, or at what came?",
        lambda log_probs, targets: log_probs.max(axis=1),
    ),
]
CROSS_ENTROPY = [
    Mistake(
        "average",
        "you average over all entries of the table, where there is one surprise per token",
        "How many tokens came? By that number the sum is divided, so where does vocab_size come in?",
        {"pick": lambda log_probs, targets: log_probs},
        lambda numbers, shape: numbers.sum() / np.prod(shape),
    ),
    Mistake(
        "pick",
        "you count how often the most likely token is the target: that is accuracy",
        "Say the target has probability 0.4 in one model and 0.1 in the other, and is likeliest in neither. "
        "Which is better, and what does your number say?",
        lambda log_probs, targets: -_is_hit(log_probs, targets),
        lambda log_probs, targets: _is_hit(log_probs, targets) - 1,
    ),
]
SHIFT = [
    Mistake(
        "align",
        "nothing is shifted: each row is asked for its own token, which the model has read",
        "Row 0 was computed from tokens[0]. Which token does it speak of?",
        lambda logits, tokens: (logits, tokens),
        lambda logits, tokens: (logits[1:], tokens[1:]),
        lambda logits, tokens: (logits[:-1], tokens[:-1]),
    ),
    Mistake(
        "align",
        "you shift the wrong way: each row is asked for the token before its own",
        "Row 0 was computed from tokens[0]. Does it speak of what came before, or of what comes next?",
        lambda logits, tokens: (logits[1:], tokens[:-1]),
    ),
    Mistake(
        "align",
        "you shift by two: each row is asked for the token after the next one",
        "Row 0 was computed from tokens[0]. What is the index of the next token?",
        lambda logits, tokens: (logits[:-2], tokens[2:]),
    ),
    Mistake(
        "align",
        "your shift goes round: the last row is asked for the first token of the text",
        "What stands in the text after its last token, and is there a target for the last row?",
        lambda logits, tokens: (logits, np.roll(tokens, -1)),
    ),
    Mistake(
        "average",
        "you divide by the number of tokens, but there is one prediction less",
        "Of how many tokens has the model read what stands before them?",
        lambda numbers, shape: numbers.sum() / (numbers.size + 1),
    ),
]
