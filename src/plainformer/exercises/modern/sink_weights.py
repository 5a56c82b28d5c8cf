"""Exercise `sink_weights`: a softmax whose rows share a part of their attention with the sink of their head."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def _largest(scores, sink):
    return np.maximum(scores.max(axis=-1, keepdims=True), sink)


def sink_weights(
    scores,
    sinks,
    *,
    of_head=lambda sinks: sinks[:, None, None],
    taken_off=_largest,
    power=lambda sink, largest: np.exp(sink - largest),
    above=lambda powers, lost: powers,
    below=lambda powers, lost: powers.sum(axis=-1, keepdims=True) + lost,
):
    """Return the weights of all heads, whose rows sum to less than one."""
    sink = of_head(sinks)
    largest = taken_off(scores, sink)
    powers, lost = np.exp(scores - largest), power(sink, largest)
    return above(powers, lost) / below(powers, lost)


def _nothing(scores, sink):
    return np.zeros_like(scores[..., :1])


def _once_more(powers, lost):
    return powers.sum(axis=-1, keepdims=True) * (1 + lost)


MISTAKES = [
    Mistake(
        "the sink plays no part: your rows sum to one",
        "If you add one number to all scores of a row, does the softmax change?",
        below=lambda powers, lost: powers.sum(axis=-1, keepdims=True),
    ),
    Mistake(
        "the power of the sink stands in the numerators, too",
        "The sink has no value that could be passed on. In which part of the fraction does its power belong?",
        above=lambda powers, lost: powers + lost,
    ),
    Mistake(
        "the sink is added to the total as it is, without the exponential",
        "The other summands of the total are powers of e. What is the sink?",
        {"power": lambda sink, largest: sink},
        {"power": lambda sink, largest: sink - largest},
        {"power": lambda sink, largest: sink, "taken_off": _nothing},
    ),
    Mistake(
        "you take the largest score off the scores, and not off the sink",
        "A softmax stays as it is if all logits go down by one and the same amount. Is the sink one of them?",
        power=lambda sink, largest: np.exp(sink),
        taken_off=[lambda scores, sink: scores.max(axis=-1, keepdims=True), _largest],
    ),
    Mistake(
        "all heads have one sink",
        "There is a logit for each head. Along which axis of the scores do heads lie?",
        of_head=[lambda sinks: sinks[:1, None, None], lambda sinks: sinks.mean(), lambda sinks: sinks.sum()],
    ),
    Mistake(
        "you add one to the total, which is a sink of zero for all heads",
        "What would the logit of a sink be whose power is one? Which logit is given?",
        power=lambda sink, largest: np.exp(-largest),
    ),
    Mistake(
        "you normalise first, and divide by the sink's share afterwards",
        "After the softmax the powers are gone. How large is the sink's power beside the other powers of its row?",
        {"below": _once_more, "power": lambda sink, largest: np.exp(sink)},
        {"below": lambda powers, lost: powers.sum(axis=-1, keepdims=True) + lost * powers.sum(axis=-1, keepdims=True)},
    ),
    Mistake(
        "your rows are summed over the queries, not over the keys",
        "Each query shares out one unit among its keys and the sink. Over which axis do you sum?",
        below=lambda powers, lost: powers.sum(axis=-2, keepdims=True) + lost,
        taken_off=[_nothing, lambda scores, sink: np.maximum(scores.max(axis=-2, keepdims=True), sink)],
    ),
    Mistake(
        "your exponential overflows: for large scores you divide infinity by infinity",
        "By which amount may all logits of a row go down, so that none of the powers is above one?",
        taken_off=_nothing,
    ),
]

_DRAW = np.random.default_rng(7)


def _case(name: str, heads: int, q_seq: int, kv_seq: int, more=0.0, sink=0.0, is_edge=False) -> Case:
    scores, sinks = 1.5 * _DRAW.normal(size=(heads, q_seq, kv_seq)) + more, _DRAW.normal(size=heads) + sink
    return Case(name, floats(scores=scores, sinks=sinks), is_edge)


EXERCISE = Exercise(
    sink_weights,
    MISTAKES,
    cases=[
        _case("three heads", 3, 4, 6),
        _case("two heads", 2, 5, 3, sink=1.0),
        _case("scores near 1,000", 2, 3, 4, more=1000.0, sink=1000.0, is_edge=True),
    ],
    examples=[
        floats(scores=np.log([[[1.0, 3.0]], [[1.0, 3.0]]]), sinks=np.log([4.0, 1.0])),
        floats(scores=np.log([[[1.0, 3.0], [2.0, 2.0]]]), sinks=np.log([4.0])),
        floats(scores=[[[1000.0, 1000.0]]], sinks=[1000.0]),
    ],
    result="(heads, q_seq, kv_seq)",
    tried_on="{sinks[0]} heads, {scores[1]} queries, {scores[2]} keys",
)
