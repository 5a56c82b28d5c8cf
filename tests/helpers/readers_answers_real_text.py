"""What readers may hand in for the exercise of the chapter `real_text`, right and wrong."""

import numpy as np

from plainformer.training import NgramModel


def in_loops(delta=0.75, add=0, back=True, once=False, uniform=False, frequency=False, raw=False, empty=None, step=1):
    """The probabilities in loops, with what may go wrong in them."""

    def my_bigram(ids, vocab_size):
        ids = [int(number) for number in ids]
        tokens, found = range(vocab_size), np.zeros((vocab_size, vocab_size))
        pairs = [(ids[n], ids[n + 1]) for n in range(0, len(ids) - 1, step)]
        before = [len({a for a, b in pairs if b == w}) for w in tokens]
        if frequency:
            before = [sum(b == w for _, b in pairs) for w in tokens]
        kinds = sum(number > 0 for number in before)
        alone = [(max(number - 0.75, 0) + 0.75 * kinds / vocab_size) / sum(before) for number in before]
        if raw:
            alone = [number / sum(before) for number in before]
        for a in tokens:
            after = [b for c, b in pairs if c == a]
            for w in tokens:
                given = delta * (1 if once else len(set(after))) * (1 / vocab_size if uniform else alone[w])
                left = max(after.count(w) - delta, 0) + add
                found[a, w] = (left + given * back) / len(after) if after else (alone[w] if empty is None else empty)
        return found

    return my_bigram


def by_the_package(ids, vocab_size):
    model = NgramModel(ids.tolist(), order=2, vocab_size=vocab_size)
    return np.array([[model.probability(w, (a,)) for w in range(vocab_size)] for a in range(vocab_size)])


def with_words(ids, vocab_size):
    """As a reader counts who begins with NumPy."""
    pairs = np.zeros((vocab_size, vocab_size))
    pairs[ids[:-1], ids[1:]] += 1
    return from_pairs(pairs)


def from_pairs(pairs, kinds_axis=0, left=lambda pairs: np.maximum(pairs - 0.75, 0), least=1):
    kinds = (pairs > 0).sum(axis=kinds_axis)
    alone = (np.maximum(kinds - 0.75, 0) + 0.75 * (kinds > 0).sum() / len(pairs)) / kinds.sum()
    after = left(pairs) + 0.75 * (pairs > 0).sum(axis=1, keepdims=True) * alone
    seen = pairs.sum(axis=1, keepdims=True)
    return np.where((seen > 0) | (least == 0), after / np.maximum(seen, least), alone)


def counted(ids, vocab_size):
    pairs = np.zeros((vocab_size, vocab_size))
    np.add.at(pairs, (ids[:-1], ids[1:]), 1)
    return pairs


RIGHT = [("bigram", in_loops()), ("bigram", by_the_package)]
WRONG = [
    ("bigram", in_loops(delta=0, back=False), "nothing is taken from the counts"),
    ("bigram", in_loops(back=False), "not given back"),
    ("bigram", in_loops(once=True), "one discount for each row"),
    ("bigram", in_loops(uniform=True), "give back to all tokens alike"),
    ("bigram", in_loops(frequency=True), "how often each token occurs"),
    ("bigram", in_loops(raw=True), "shorter context is not smoothed"),
    ("bigram", lambda ids, size: from_pairs(counted(ids, size), least=0), "or of nan"),
    ("bigram", with_words, "each pair is counted once"),
    ("bigram", lambda ids, size: in_loops()(ids[:-1], size), "last pair"),
    ("bigram", lambda ids, size: from_pairs(counted(ids, size), kinds_axis=1), "came after each"),
    ("bigram", lambda ids, size: from_pairs(counted(ids, size), left=lambda pairs: pairs - 0.75), "below zero"),
    (
        "bigram",
        lambda ids, size: (counted(ids, size) + 1) / (counted(ids, size) + 1).sum(1, keepdims=True),
        "one is added",
    ),
    ("bigram", in_loops(empty=0), "made of zeros"),
    ("bigram", lambda ids, vocab_size: in_loops()(ids, vocab_size).T, "your columns sum to one"),
    ("bigram", lambda ids, vocab_size: in_loops()(ids[::-1], vocab_size), "counted backwards"),
    ("bigram", in_loops(step=2), "do not overlap"),
    ("bigram", lambda ids, vocab_size: np.log(in_loops()(ids, vocab_size)), "return logarithms"),
]
