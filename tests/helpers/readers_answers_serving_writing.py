"""Answers to `min_p` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

import plainformer as pf


def cut(limit=lambda p, share: share * max(p), stays=np.greater_equal, fill=0.0, by=np.sum):
    """The answer of a reader who takes some step otherwise."""

    def answer(probabilities, share):
        left = np.array([p if stays(p, limit(probabilities, share)) else fill for p in probabilities])
        return left / by(left)

    return answer


def shorter(probabilities, share):
    left = probabilities[probabilities >= share * probabilities.max()]
    return left / left.sum()


def by_softmax(probabilities, share):
    kept = probabilities >= share * probabilities.max()
    return np.where(kept, np.exp(probabilities), 0) / np.exp(probabilities)[kept].sum()


def nucleus(probabilities, share):
    total, answer = 0.0, np.zeros(len(probabilities))
    for token in np.argsort(-probabilities):
        if total < share:
            answer[token] = probabilities[token]
            total += probabilities[token]
    return answer / answer.sum()


def in_logits(probabilities, share):
    logits = jnp.log(probabilities)
    kept = jnp.where(logits - logits.max() >= jnp.log(share), probabilities, 0)
    return kept / kept.sum()


def package_min_p(probabilities, share):
    return pf.next_token_probabilities(jnp.log(probabilities), min_p=share)


MIN_P = [
    (cut(limit=lambda p, share: share), "with the share itself"),
    (cut(limit=lambda p, share: share * np.mean(p)), "share of the mean"),
    (cut(limit=lambda p, share: max(p) - share * max(p)), "without the share"),
    (nucleus, "which is top-p"),
    (cut(stays=np.less), "below the threshold"),
    (cut(stays=np.greater), "exactly the share"),
    (shorter, "leave out the tokens"),
    (cut(by=lambda left: 1), "do not renormalise"),
    (by_softmax, "by a softmax"),
]
RIGHT = [
    ("min_p", in_numpy(cut())),
    ("min_p", in_jax(in_logits)),
    ("min_p", package_min_p),
]
WRONG = [("min_p", in_numpy(function), words) for function, words in MIN_P]
