"""Exercise `merge_softmax`: attention over all keys from what two halves of them give."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _shrunk(largest_a, largest_b):
    """By how much either half shrinks, if it is measured against the larger of both."""
    largest = np.maximum(largest_a, largest_b)
    return np.exp(largest_a - largest), np.exp(largest_b - largest)


def _divided(out_a, total_a, out_b, total_b):
    return (out_a + out_b) / (total_a + total_b)


def merge_softmax(
    out_a,
    largest_a,
    total_a,
    out_b,
    largest_b,
    total_b,
    *,
    shrink=_shrunk,
    of_total=lambda factor: factor,
    finish=_divided,
):
    """Return the attention over both halves."""
    a, b = shrink(largest_a, largest_b)
    return finish(a * out_a, of_total(a) * total_a, b * out_b, of_total(b) * total_b)


def _halfway(out_a, total_a, out_b, total_b):
    return (out_a / total_a + out_b / total_b) / 2


MISTAKES = [
    Mistake(
        "the two halves are added as they are, each measured against a largest score of its own",
        "Both wrote 1 for their best key. Are their best keys equally good?",
        shrink=lambda a, b: (1, 1),
    ),
    Mistake(
        "you take the mean of the two quotients, as if both halves weighed the same",
        "Divide once, at the end. Which of the two totals is larger?",
        finish=_halfway,
    ),
    Mistake(
        "the factors are turned round: the half with the smaller scores grows",
        "The half whose largest score is the larger one keeps its numbers. By what is the other one multiplied?",
        shrink=lambda a, b: _shrunk(b, a),
    ),
    Mistake(
        "you do not divide by the total",
        "How much weight is there, in both halves together?",
        finish=lambda out_a, total_a, out_b, total_b: out_a + out_b,
    ),
    Mistake(
        "the sums are brought to one scale, the totals are not",
        "A total is a sum of the same exponentials. Does it not shrink, too?",
        of_total=lambda factor: 1,
    ),
]


_RNG = np.random.default_rng(2018)


def _case(name, q_seq, d_v, apart, is_edge=False):
    """Two halves whose largest scores are about so far apart."""

    def half(level):
        return (
            _RNG.normal(size=(q_seq, d_v)),
            level + _RNG.normal(size=(q_seq, 1)),
            1 + _RNG.random((q_seq, 1)),
        )

    names = [f"{what}_{which}" for which in "ab" for what in ("out", "largest", "total")]
    return Case(name, dict(zip(names, [*half(0.0), *half(apart)], strict=True)), is_edge)


def _example(largest_a, largest_b):
    """One query, whose halves have the sums 10 and 30, the totals 1 and 2."""
    return {
        "out_a": np.array([[10.0, 10.0]]),
        "largest_a": np.array([[largest_a]]),
        "total_a": np.array([[1.0]]),
        "out_b": np.array([[30.0, 30.0]]),
        "largest_b": np.array([[largest_b]]),
        "total_b": np.array([[2.0]]),
    }


EXERCISE = Exercise(
    merge_softmax,
    MISTAKES,
    cases=[
        _case("halves of the same size", 5, 3, 0.0),
        _case("a second half with larger scores", 4, 2, 2.0),
        _case("a first half with larger scores", 3, 4, -2.0),
        _case("halves too far apart for an exponential", 2, 3, 200.0, is_edge=True),
    ],
    examples=[_example(0.0, 0.0), _example(0.0, float(np.log(3))), _example(float(np.log(2)), 0.0)],
    result="(q_seq, d_v)",
    tried_on="out {out_a} and {out_b}, largest {largest_a} and {largest_b}, total {total_a} and {total_b}",
)
