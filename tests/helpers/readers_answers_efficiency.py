"""Answers to the exercises of the chapter `efficiency` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def by_logarithms(out_a, largest_a, total_a, out_b, largest_b, total_b):
    """The two quotients, weighted by their shares of the total."""
    share = 1 / (1 + jnp.exp(largest_b - largest_a) * total_b / total_a)
    return share * out_a / total_a + (1 - share) * out_b / total_b


def at_the_larger(out_a, largest_a, total_a, out_b, largest_b, total_b):
    largest = np.maximum(largest_a, largest_b)
    a, b = np.exp(largest_a - largest), np.exp(largest_b - largest)
    return (a * out_a + b * out_b) / (a * total_a + b * total_b)


def unscaled(out_a, largest_a, total_a, out_b, largest_b, total_b):
    return (out_a + out_b) / (total_a + total_b)


def mean_of_both(out_a, largest_a, total_a, out_b, largest_b, total_b):
    largest = np.maximum(largest_a, largest_b)
    a, b = np.exp(largest_a - largest), np.exp(largest_b - largest)
    return 0.5 * (a * out_a / (a * total_a)) + 0.5 * (b * out_b / (b * total_b))


def turned_round(out_a, largest_a, total_a, out_b, largest_b, total_b):
    return at_the_larger(out_a, largest_b, total_a, out_b, largest_a, total_b)


def undivided(out_a, largest_a, total_a, out_b, largest_b, total_b):
    largest = np.maximum(largest_a, largest_b)
    return np.exp(largest_a - largest) * out_a + np.exp(largest_b - largest) * out_b


def totals_as_they_are(out_a, largest_a, total_a, out_b, largest_b, total_b):
    return undivided(out_a, largest_a, total_a, out_b, largest_b, total_b) / (total_a + total_b)


def token_by_token(probs, draft_probs):
    found = np.zeros_like(probs)
    for drafted, often in enumerate(draft_probs):
        stays = min(1, probs[drafted] / often)
        found[drafted] += often * stays
        missing = np.maximum(0, probs - draft_probs)
        found += often * (1 - stays) * missing / missing.sum()
    return found


def at_once(probs, draft_probs):
    stays = jnp.minimum(probs, draft_probs)
    return stays + jnp.maximum(0, probs - draft_probs)


def outcome(
    stays=np.minimum, instead=lambda p, q: np.maximum(0, p - q), divide=True, refused=lambda kept: 1 - kept.sum()
):
    def of(probs, draft_probs):
        kept, new = stays(probs, draft_probs), instead(probs, draft_probs)
        return kept + refused(kept) * (new / new.sum() if divide else new)

    return of


MERGE = [
    (unscaled, "added as they are"),
    (mean_of_both, "mean of the two quotients"),
    (turned_round, "turned round"),
    (undivided, "do not divide"),
    (totals_as_they_are, "the totals are not"),
]
OUTCOME = [
    (outcome(instead=lambda p, q: p), "the large model's own distribution"),
    (outcome(divide=False), "does not sum to one"),
    (outcome(stays=lambda p, q: q * np.minimum(1, q / p)), "ratio turned round"),
    (np.minimum, "leave out what takes the place"),
    (outcome(stays=lambda p, q: np.minimum(1, p / q)), "the chance to stay"),
    (outcome(instead=lambda p, q: np.maximum(0, q - p)), "gave too much to"),
]
RIGHT = [
    ("merge_softmax", in_numpy(at_the_larger)),
    ("merge_softmax", in_jax(by_logarithms)),
    ("speculative_outcome", in_numpy(token_by_token)),
    ("speculative_outcome", in_jax(at_once)),
]
WRONG = [
    *(("merge_softmax", in_numpy(function), words) for function, words in MERGE),
    *(("speculative_outcome", in_numpy(function), words) for function, words in OUTCOME),
]
