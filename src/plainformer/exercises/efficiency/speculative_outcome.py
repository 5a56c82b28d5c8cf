"""Exercise `speculative_outcome`: the distribution of what comes out of one guess, accepted or replaced."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _stays(probs, draft_probs):
    """How often each token is drafted and stays."""
    return draft_probs * np.minimum(1, probs / draft_probs)


def _missing(probs, draft_probs):
    """What the draft gave too little to."""
    return np.maximum(0, probs - draft_probs)


def _shares(numbers):
    return numbers / numbers.sum()


def speculative_outcome(probs, draft_probs, *, stays=_stays, missing=_missing, shares=_shares, refused=None):
    """Return the distribution of the token that comes out."""
    kept = stays(probs, draft_probs)
    gone = 1 - kept.sum() if refused is None else refused(kept)
    return kept + gone * shares(missing(probs, draft_probs))


MISTAKES = [
    Mistake(
        "after a refusal you draw from the large model's own distribution",
        "A token that the draft likes had its chance already. Which tokens did the draft write too seldom?",
        missing=lambda probs, draft_probs: probs,
    ),
    Mistake(
        "what is drawn after a refusal does not sum to one",
        "The residual is a distribution. By what is it divided?",
        shares=lambda numbers: numbers,
    ),
    Mistake(
        "you accept by the ratio turned round, draft by model",
        "How often should a token stay that the large model likes better than the draft does?",
        stays=lambda probs, draft_probs: draft_probs * np.minimum(1, draft_probs / probs),
    ),
    Mistake(
        "you leave out what takes the place of a refused token",
        "Does your result sum to one?",
        refused=lambda kept: 0.0,
    ),
    Mistake(
        "you return the chance to stay, once a token is drafted, and not how often it is drafted and stays",
        "How often does the draft write it?",
        stays=lambda probs, draft_probs: np.minimum(1, probs / draft_probs),
    ),
    Mistake(
        "you replace refused tokens by what the draft gave too much to",
        "Which of the two distributions is subtracted from the other?",
        missing=lambda probs, draft_probs: np.maximum(0, draft_probs - probs),
    ),
]

_RNG = np.random.default_rng(2023)


def _case(name, vocab_size, is_edge=False):
    probs, draft_probs = _RNG.dirichlet(np.ones(vocab_size), size=2)
    return Case(name, {"probs": probs, "draft_probs": draft_probs}, is_edge)


def _example(probs, draft_probs):
    return {"probs": np.array(probs), "draft_probs": np.array(draft_probs)}


EXERCISE = Exercise(
    speculative_outcome,
    MISTAKES,
    cases=[_case("three tokens", 3), _case("seven tokens", 7), _case("two tokens", 2, is_edge=True)],
    examples=[_example([0.5, 0.5], [0.25, 0.75]), _example([0.5, 0.3, 0.2], [0.2, 0.7, 0.1])],
    result="(vocab_size,)",
    tried_on="probs {probs}, draft_probs {draft_probs}",
)
