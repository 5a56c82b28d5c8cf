"""Exercise `patching_effect`: how far a patch moves an answer to that of the other run."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _margins(logits, rooms):
    """Of each story the logit of our answer minus that of the other run's."""
    each = np.arange(len(logits))
    return logits[each, rooms[:, 0]] - logits[each, rooms[:, 1]]


def patching_effect(
    patched,
    before,
    source,
    rooms,
    *,
    measure=_margins,
    moved=lambda patched, before, source: patched - before,
    whole=lambda patched, before, source: source - before,
    finish=np.median,
):
    """Return the median effect over all stories, 0 without a change and 1 at the other run's answer."""
    three = [measure(logits, rooms) for logits in (patched, before, source)]
    return np.asarray(finish(moved(*three) / whole(*three)))


def _probabilities(logits, rooms):
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return _margins(shifted / shifted.sum(axis=1, keepdims=True), rooms)


MISTAKES = [
    Mistake(
        "the effect of no change is 1 and of a whole change 0: you measure from the other run",
        "From which of the two answers should the way be measured?",
        moved=lambda patched, before, source: patched - source,
        whole=lambda patched, before, source: before - source,
    ),
    Mistake(
        "the sign is missing: a patch that turns the answer counts below 0",
        "If patched equals source, what should come out?",
        whole=lambda patched, before, source: before - source,
    ),
    Mistake(
        "you divide by the margin without the patch, not by the whole way",
        "How long is the way from one answer to the other? Where does it begin?",
        whole=lambda patched, before, source: before,
    ),
    Mistake(
        "you divide by the margin of the other run, not by the whole way",
        "How long is the way from one answer to the other? Where does it begin?",
        whole=lambda patched, before, source: source,
    ),
    Mistake(
        "you do not divide: a story with large logits counts more",
        "Two stories are turned round wholly, one from 2 to -2, one from 6 to -6. Is one effect three times the other?",
        whole=lambda patched, before, source: 1.0,
    ),
    Mistake(
        "you take the logit of our answer alone",
        "If all logits rise by 5, has the answer changed? What has to be taken away?",
        measure=lambda logits, rooms: logits[np.arange(len(logits)), rooms[:, 0]],
    ),
    Mistake(
        "you take the logit of the other answer alone",
        "If all logits rise by 5, has the answer changed? What has to be taken away?",
        measure=lambda logits, rooms: logits[np.arange(len(logits)), rooms[:, 1]],
    ),
    Mistake(
        "you measure probabilities, which hardly move near 0 and 1",
        "A logit that falls from 9 to 6 hardly moves a probability. What did the text measure?",
        measure=_probabilities,
    ),
    Mistake(
        "you take the mean over the stories, which one story may carry away",
        "Which number in the middle is not moved by one story whose effect is 50?",
        finish=np.mean,
    ),
]

_RNG = np.random.default_rng(18)


def _case(name, stories, vocab_size, is_edge=False):
    rooms = np.stack([_RNG.permutation(vocab_size)[:2] for _ in range(stories)])
    patched, before, source = _RNG.normal(size=(3, stories, vocab_size)).round(1)
    each = np.arange(stories)
    before[each, rooms[:, 0]] += 4
    source[each, rooms[:, 1]] += 5
    return Case(name, {"patched": patched, "before": before, "source": source, "rooms": rooms}, is_edge)


EXERCISE = Exercise(
    patching_effect,
    MISTAKES,
    cases=[_case("7 stories", 7, 4), _case("5 stories", 5, 6)],
    examples=[
        {
            "patched": np.array([[1.0, 2.0, 9.0]]),
            "before": np.array([[4.0, 1.0, 9.0]]),
            "source": np.array([[2.0, 3.0, 9.0]]),
            "rooms": np.array([[0, 1]]),
        },
        {
            "patched": np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 3.0]]),
            "before": np.array([[4.0, 1.0], [3.0, 1.0], [2.0, 1.0]]),
            "source": np.array([[2.0, 3.0], [0.0, 6.0], [1.0, 5.0]]),
            "rooms": np.array([[0, 1], [0, 1], [0, 1]]),
        },
    ],
    result="()",
    tried_on="{patched[0]} stories",
)
