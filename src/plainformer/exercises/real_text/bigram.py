"""Exercise `bigram`: the probabilities of a model that counts pairs, with a discount that the shorter context gets."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake

DELTA = 0.75


def _pairs(ids, vocab_size):
    counts = np.zeros((vocab_size, vocab_size))
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    return counts


def _kinds(counts):
    return (counts > 0).sum(axis=0).astype(float)


def _taken(counts):
    return DELTA * (counts > 0).sum(axis=-1, keepdims=True)


def _smoothed(counts):
    """Of how many kinds each token is, discounted; what was taken goes to all tokens alike."""
    return (np.maximum(counts - DELTA, 0) + _taken(counts) / len(counts)) / counts.sum()


def _after(counts, alone, left, taken):
    seen = counts.sum(axis=1, keepdims=True)
    after = (left(counts) + taken(counts) * alone) / np.maximum(seen, 1)
    return seen, after


def bigram(
    ids,
    vocab_size,
    *,
    count=_pairs,
    kinds=_kinds,
    smooth=_smoothed,
    left=lambda counts: np.maximum(counts - DELTA, 0),
    taken=_taken,
    unseen=lambda alone: alone,
    share=lambda alone: alone,
    finish=lambda after: after,
):
    """Return the probability of each token, in columns, after each token, in rows."""
    counts = count(ids, vocab_size)
    alone = smooth(kinds(counts))
    seen, after = _after(counts, share(alone), left, taken)
    return finish(np.where(seen > 0, after, unseen(alone)))


MISTAKES = [
    Mistake(
        "nothing is taken from the counts, so a pair that never came has the probability 0",
        "How surprised is such a model when a new pair comes?",
        left=lambda counts: counts,
        taken=lambda counts: np.zeros((len(counts), 1)),
    ),
    Mistake(
        "what you take from the counts is not given back: the rows do not sum to one",
        "Who gets the discount, when a token has lost it?",
        taken=lambda counts: np.zeros((len(counts), 1)),
    ),
    Mistake(
        "you give back one discount for each row, where each kind of token after it has lost one",
        "If three kinds of tokens came after a, how much was taken in all?",
        taken=lambda counts: np.full((len(counts), 1), DELTA),
    ),
    Mistake(
        "you give back to all tokens alike, where the shorter context should say how much each gets",
        "Is a token that follows many others likelier in a new pair than one that follows a single one?",
        share=lambda alone: np.full_like(alone, 1 / len(alone)),
    ),
    Mistake(
        "your shorter context counts how often each token occurs, where it should count after how many different ones",
        "The letter h is frequent, but mostly follows t or c. How likely is it after a letter that it never followed?",
        kinds=lambda counts: counts.sum(axis=0),
    ),
    Mistake(
        "your shorter context is not smoothed: a token that follows none gets the probability 0",
        "What does the formula say of the empty context, and what stands below it?",
        smooth=lambda counts: counts / counts.sum(),
    ),
    Mistake(
        "after a token that was never followed by any your row is made of zeros, or of equal numbers",
        "What is p(w | a), if a never occurred as a context?",
        unseen=[np.zeros_like, lambda alone: np.full_like(alone, 1 / len(alone))],
    ),
    Mistake(
        "rows and columns are exchanged: your columns sum to one",
        "Row a should say what comes after a. Which index of the counts is the token before?",
        finish=lambda after: after.T,
    ),
    Mistake(
        "the pairs are counted backwards: each token with the one before it",
        "In the text a b, which of the two is the context?",
        count=lambda ids, vocab_size: _pairs(ids[::-1], vocab_size),
    ),
    Mistake(
        "every other pair is left out: your pairs do not overlap",
        "Of how many pairs is the inner token of a b c a part?",
        count=lambda ids, vocab_size: _counted_apart(ids, vocab_size),
    ),
    Mistake(
        "one is added to every count, where something should be taken from each",
        "Which probability has a pair that never came, and which one that came once?",
        left=lambda counts: counts + 1,
        taken=lambda counts: np.zeros((len(counts), 1)),
    ),
    Mistake(
        "you return logarithms, where probabilities are asked for",
        "Do the numbers of a row sum to one?",
        finish=np.log,
    ),
]


def _counted_apart(ids, vocab_size):
    counts = np.zeros((vocab_size, vocab_size))
    np.add.at(counts, (ids[: len(ids) // 2 * 2 : 2], ids[1::2]), 1)
    return counts


def _case(name, ids, vocab_size, is_edge=False):
    return Case(name, {"ids": np.array(ids), "vocab_size": vocab_size}, is_edge)


_RNG = np.random.default_rng(1999)

EXERCISE = Exercise(
    bigram,
    MISTAKES,
    cases=[
        _case("a text of 5 tokens", np.append(_RNG.choice(5, size=28, p=[0.4, 0.3, 0.15, 0.1, 0.05]), 4), 5),
        _case("a token that nothing follows", [0, 1, 0, 1, 2, 0, 0, 1, 0, 3], 4, is_edge=True),
        _case("a token that does not occur", [0, 1, 0, 1, 1, 0, 0], 3, is_edge=True),
    ],
    examples=[
        {"ids": np.array([0, 1, 0, 1]), "vocab_size": 2},
        {"ids": np.array([0, 1, 2, 0, 1, 0, 0]), "vocab_size": 3},
        {"ids": np.array([0, 1, 0, 1]), "vocab_size": 3},
        {"ids": np.array([0, 1, 0, 2]), "vocab_size": 3},
    ],
    result="(vocab_size, vocab_size)",
    tried_on="{ids[0]} ids, a vocabulary of {vocab_size}",
)
