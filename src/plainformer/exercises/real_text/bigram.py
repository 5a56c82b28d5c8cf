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


def _side_by_side(ids, vocab_size):
    """The first two tokens, the next two, and so on: every other pair."""
    counts = np.zeros((vocab_size, vocab_size))
    np.add.at(counts, (ids[: len(ids) // 2 * 2 : 2], ids[1::2]), 1)
    return counts


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
    finish=lambda after, counts: after,
):
    """Return the probability of each token, in columns, after each token, in rows."""
    counts = count(ids, vocab_size)
    seen, alone = counts.sum(axis=1, keepdims=True), smooth(kinds(counts))
    after = (left(counts) + taken(counts) * share(alone)) / np.maximum(seen, 1)
    return finish(np.where(seen > 0, after, unseen(alone)), counts)


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
        "your shorter context is not smoothed: what was taken from it does not go to all tokens alike",
        "What does the formula say of the empty context, and what stands below it?",
        smooth=[lambda counts: counts / counts.sum(), lambda counts: np.maximum(counts - DELTA, 0) / counts.sum()],
    ),
    Mistake(
        "after a token that was never followed by any your row is made of zeros, of equal numbers or of nan",
        "What is p(w | a), if a never occurred as a context?",
        unseen=[
            np.zeros_like,
            lambda alone: np.full_like(alone, 1 / len(alone)),
            lambda alone: np.full_like(alone, np.nan),
        ],
    ),
    Mistake(
        "rows and columns are exchanged: your columns sum to one",
        "Row a should say what comes after a. Which index of the counts is the token before?",
        finish=lambda after, counts: after.T,
    ),
    Mistake(
        "the pairs are counted backwards: each token with the one before it",
        "In the text a b, which of the two is the context?",
        count=lambda ids, vocab_size: _pairs(ids[::-1], vocab_size),
    ),
    Mistake(
        "every other pair is left out: your pairs do not overlap",
        "Of how many pairs is the inner token of a b c a part?",
        count=_side_by_side,
    ),
    Mistake(
        "one is added to every count, where something should be taken from each",
        "Which probability has a pair that never came, and which one that came once?",
        finish=lambda after, counts: (counts + 1) / (counts + 1).sum(axis=1, keepdims=True),
    ),
    Mistake(
        "the last pair of the text is not counted",
        "How many pairs of neighbours has a text of N tokens?",
        count=lambda ids, vocab_size: _pairs(ids[:-1], vocab_size),
    ),
    Mistake(
        "each pair is counted once, however often it comes",
        "pairs[before, after] += 1 adds one to each place, even if it is named twice. What does np.add.at do?",
        count=lambda ids, vocab_size: (_pairs(ids, vocab_size) > 0).astype(float),
    ),
    Mistake(
        "your shorter context counts how many different tokens came after each, where it should count those before it",
        "In which axis of the pairs does the token before stand?",
        kinds=lambda counts: (counts > 0).sum(axis=1).astype(float),
    ),
    Mistake(
        "the discount is taken from pairs that never came, too: some counts fall below zero",
        "What is max(c - delta, 0) for a count of 0?",
        left=lambda counts: counts - DELTA,
    ),
    Mistake(
        "you return logarithms, where probabilities are asked for",
        "Do the numbers of a row sum to one?",
        finish=[lambda after, counts: np.log(after), lambda after, counts: -np.log(after)],
    ),
]


def _case(name, ids, vocab_size, is_edge=False):
    return Case(name, {"ids": np.array(ids), "vocab_size": vocab_size}, is_edge)


_RNG = np.random.default_rng(1999)

EXERCISE = Exercise(
    bigram,
    MISTAKES,
    cases=[
        # Its first token never comes again, and every token is followed by one.
        _case("a text of 5 tokens", [4, *_RNG.choice(4, size=27, p=[0.4, 0.3, 0.2, 0.1]), 0], 5),
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
