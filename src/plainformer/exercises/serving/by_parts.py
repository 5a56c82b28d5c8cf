"""Exercise `by_parts`: rotary positions for longer texts, with slow pairs slower and fast ones as they were."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def by_parts(
    speeds,
    factor,
    slow_turns,
    fast_turns,
    trained_len,
    *,
    count=lambda speeds, trained_len, factor: trained_len * speeds / (2 * np.pi),
    share=lambda turns, slow, fast: (turns - slow) / (fast - slow),
    bound=lambda share: np.clip(share, 0, 1),
    mix=lambda kept, speeds, slower: kept * speeds + (1 - kept) * slower,
    slower=lambda speeds, factor: speeds / factor,
):
    """Return how fast each pair turns after the scaling."""
    kept = bound(share(count(speeds, trained_len, factor), slow_turns, fast_turns))
    return mix(kept, speeds, slower(speeds, factor))


MISTAKES = [
    Mistake(
        "you count radians, where you should count turns",
        "By which angle is a turn complete?",
        count=lambda speeds, trained_len, factor: trained_len * speeds,
    ),
    Mistake(
        "you count turns in the longer text, where the model has seen those of its training only",
        "Which angles has the model met?",
        count=lambda speeds, trained_len, factor: factor * trained_len * speeds / (2 * np.pi),
    ),
    Mistake(
        "the share has no bounds: a fast pair becomes faster, a slow one may turn backwards",
        "Which share of its speed does a pair keep that turns twenty times?",
        bound=lambda share: share,
    ),
    Mistake(
        "the share is turned round: fast pairs become slower, and slow ones keep their speed",
        "Of which pairs has the model seen all angles?",
        share=lambda turns, slow, fast: (fast - turns) / (fast - slow),
    ),
    Mistake(
        "there is no passage: every pair is either kept or slowed",
        "Which share does a pair keep half-way between slow and fast?",
        bound=lambda share: (share > 0.5) * 1.0,
    ),
    Mistake(
        "all pairs become slower: this is position interpolation",
        "What should happen to the speed of a pair that turns more than fast_turns times?",
        bound=lambda share: 0 * share,
    ),
    Mistake(
        "you multiply by the factor, so slow pairs become faster",
        "Should a pair turn farther or less far, if the text is longer?",
        slower=lambda speeds, factor: speeds * factor,
    ),
]

EXERCISE = Exercise(
    by_parts,
    MISTAKES,
    cases=[
        Case(
            "four pairs",
            floats(speeds=[1.0, 0.2, 0.1, 0.02])
            | {"factor": 8.0, "slow_turns": 1.0, "fast_turns": 5.0, "trained_len": 100},
        ),
        Case(
            "five pairs, another factor",
            floats(speeds=[0.8, 0.5, 0.3, 0.14, 0.002])
            | {"factor": 4.0, "slow_turns": 2.0, "fast_turns": 16.0, "trained_len": 128},
        ),
        Case(
            "texts as long as before",
            floats(speeds=[1.0, 0.1]) | {"factor": 1.0, "slow_turns": 1.0, "fast_turns": 4.0, "trained_len": 128},
            True,
        ),
    ],
    examples=[
        {
            "speeds": np.array([2 * np.pi, 1.5 * np.pi / 50, 0.0]),
            "factor": 2.0,
            "slow_turns": 1.0,
            "fast_turns": 4.0,
            "trained_len": 100,
        },
        {"speeds": np.array([1.0]), "factor": 2.0, "slow_turns": 1.0, "fast_turns": 4.0, "trained_len": 10},
    ],
    result="(pairs,)",
    tried_on="{speeds[0]} pairs",
)
