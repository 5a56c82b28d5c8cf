"""Exercise `label_smoothing`: cross-entropy with a part of each target shared out among all tokens."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake
from plainformer.exercises.primer.cross_entropy import SURPRISE, log_softmax, mean


def _smoothed(targets, vocab_size, epsilon):
    """How much each token of the vocabulary is expected, row by row."""
    return (1 - epsilon) * np.eye(vocab_size)[targets] + epsilon / vocab_size


def label_smoothing(
    logits,
    targets,
    epsilon,
    *,
    log_probs=log_softmax,
    mix=lambda log_probs, epsilon: log_probs,
    expected=_smoothed,
    average=mean,
    finish=lambda surprise: surprise,
):
    """Return the mean cross-entropy of the smoothed targets and the model, in nats."""
    weighted = expected(targets, logits.shape[1], epsilon) * mix(log_probs(logits), epsilon)
    return np.asarray(finish(-average(weighted.sum(axis=1), logits.shape)))


def _others_only(targets, vocab_size, epsilon):
    is_target = np.eye(vocab_size)[targets]
    return (1 - epsilon) * is_target + epsilon / (vocab_size - 1) * (1 - is_target)


def _without_its_part(targets, vocab_size, epsilon):
    is_target = np.eye(vocab_size)[targets]
    return (1 - epsilon) * is_target + epsilon / vocab_size * (1 - is_target)


MISTAKES = [
    Mistake(
        "the sign of the second part is wrong: you reward the model for making other tokens impossible",
        "Should the loss become larger or smaller if the model gives some token next to no probability?",
        expected=lambda targets, vocab_size, epsilon: (
            _smoothed(targets, vocab_size, epsilon) - 2 * epsilon / vocab_size
        ),
    ),
    Mistake(
        "you share epsilon among the other tokens only, vocab_size - 1 of them",
        "In the equation the mean runs over the whole vocabulary. Is the target a part of it?",
        expected=_others_only,
    ),
    Mistake(
        "the target does not get its own part of epsilon, so that the shares do not sum to 1",
        "What do 1 - epsilon and vocab_size - 1 times epsilon / vocab_size sum to?",
        expected=_without_its_part,
    ),
    Mistake(
        "you add up the surprises at all tokens of the vocabulary, where you should take their mean",
        "If epsilon is shared out evenly among vocab_size tokens, how much does each of them get?",
        expected=lambda targets, vocab_size, epsilon: (1 - epsilon) * np.eye(vocab_size)[targets] + epsilon,
    ),
    Mistake(
        "epsilon and 1 - epsilon are swapped: the target gets the small share",
        "Without smoothing, epsilon is 0. What should be left of the loss then?",
        expected=lambda targets, vocab_size, epsilon: _smoothed(targets, vocab_size, 1 - epsilon),
    ),
    Mistake(
        "epsilon plays no part: that is the cross-entropy",
        "How sure of the target does the loss want the model to be, and how sure should it want it to be?",
        expected=lambda targets, vocab_size, epsilon: np.eye(vocab_size)[targets],
    ),
    Mistake(
        "the second part is missing: you only shrink the loss to 1 - epsilon of it",
        "Which model has the least loss if all losses become smaller by the same factor?",
        expected=lambda targets, vocab_size, epsilon: (1 - epsilon) * np.eye(vocab_size)[targets],
    ),
    Mistake(
        "the target keeps its whole share, and epsilon comes on top",
        "The shares of a row should sum to 1. From whom is epsilon taken?",
        expected=lambda targets, vocab_size, epsilon: np.eye(vocab_size)[targets] + epsilon / vocab_size,
    ),
    Mistake(
        "you smooth the probabilities of the model, where the target should be smoothed",
        "What is the most that such a loss takes off for being sure, and what does it cost to be sure and right?",
        mix=lambda log_probs, epsilon: np.log((1 - epsilon) * np.exp(log_probs) + epsilon / log_probs.shape[1]),
        expected=lambda targets, vocab_size, epsilon: np.eye(vocab_size)[targets],
    ),
    *SURPRISE[:10],
]

_RNG = np.random.default_rng(2016)


def _case(name, seq, vocab_size, epsilon, is_edge=False, change=lambda logits: logits):
    logits = (2 * _RNG.normal(size=(seq, vocab_size))).round(1)
    inputs = {"logits": change(logits), "targets": _RNG.integers(0, vocab_size, seq), "epsilon": epsilon}
    return Case(name, inputs, is_edge)


_LOGITS, _TARGETS = np.array([[2.0, 1, 4], [1, 3, 1]]), np.array([2, 0])

EXERCISE = Exercise(
    label_smoothing,
    MISTAKES,
    cases=[
        _case("5 tokens", 5, 7, 0.1),
        _case("logits above 0", 4, 3, 0.3, change=lambda logits: np.abs(logits) + 0.5),
        _case("logits near 1000", 3, 4, 0.2, is_edge=True, change=lambda logits: 1000 + (2 * logits).round() / 2),
        _case("no smoothing", 6, 5, 0.0, is_edge=True),
    ],
    examples=[{"logits": shift + _LOGITS, "targets": _TARGETS, "epsilon": 0.3} for shift in (0, 1000)],
    result="()",
    tried_on="{logits[0]} tokens, a vocabulary of {logits[1]}, epsilon {epsilon}",
)
