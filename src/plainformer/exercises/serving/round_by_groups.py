"""Exercise `round_by_groups`: what keys become in few bits, where consecutive tokens of a channel are a group."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _of_channels(numbers, group):
    return numbers.T.reshape(numbers.shape[1], -1, group)


def _back_to_tokens(groups, shape):
    return groups.reshape(shape[::-1]).T


def round_by_groups(
    numbers,
    bits,
    group,
    *,
    cut=_of_channels,
    join=_back_to_tokens,
    lowest=lambda groups: groups.min(axis=-1, keepdims=True),
    highest=lambda groups: groups.max(axis=-1, keepdims=True),
    last_code=lambda bits: 2**bits - 1,
    restored=lambda codes, step, low: low + step * codes,
):
    """Return the numbers, each on the nearest step of its group."""
    groups = cut(numbers, group)
    low = lowest(groups)
    step = (highest(groups) - low) / last_code(bits)
    codes = np.round((groups - low) / np.where(step == 0, 1, step))
    return join(restored(codes, step, low), numbers.shape)


def _of_tokens(numbers, group):
    return numbers.reshape(numbers.shape[0], -1, group)


def _whole_channel(numbers, group):
    return numbers.T[:, None]


MISTAKES = [
    Mistake(
        "the groups are pieces of a token, where they should be consecutive tokens of a channel",
        "Which numbers are of about the same size: those of one token or those of one channel?",
        cut=_of_tokens,
        join=lambda groups, shape: groups.reshape(shape),
    ),
    Mistake(
        "each channel is one group, from the first token to the last",
        "How many tokens share a step?",
        cut=_whole_channel,
    ),
    Mistake(
        "all groups share one step and one least number",
        "Over which axis do you take the least number and the largest?",
        lowest=lambda groups: groups.min(keepdims=True),
        highest=lambda groups: groups.max(keepdims=True),
    ),
    Mistake(
        "you count 2 to the bits steps between the least number and the largest; with codes from 0 there is one fewer",
        "What is the largest code that the bits can hold?",
        last_code=lambda bits: 2**bits,
    ),
    Mistake(
        "your steps go from minus the largest size to plus the largest size, so that some codes are never used",
        "Between which two numbers of the group should the codes lie?",
        lowest=lambda groups: 0 * groups.min(axis=-1, keepdims=True),
        highest=lambda groups: np.abs(groups).max(axis=-1, keepdims=True),
        last_code=lambda bits: 2 ** (bits - 1) - 1,
    ),
    Mistake(
        "the least number is not added again",
        "Which number should code 0 become?",
        restored=lambda codes, step, low: step * codes,
    ),
    Mistake(
        "you return the codes and not the numbers that they stand for",
        "What turns a code back into a number?",
        restored=lambda codes, step, low: codes,
    ),
]

_RNG = np.random.default_rng(2024)


def _case(name, tokens, channels, bits, group, is_edge=False):
    """Keys of which each channel has a level of its own."""
    numbers = draw(_RNG, 4, numbers=(tokens, channels))["numbers"] + 3.0 * np.arange(channels)
    return Case(
        name,
        {"numbers": numbers if not is_edge else np.round(numbers[:1] + 0 * numbers, 2), "bits": bits, "group": group},
        is_edge,
    )


EXERCISE = Exercise(
    round_by_groups,
    MISTAKES,
    cases=[
        _case("12 tokens, 6 channels", 12, 6, 4, 3),
        _case("10 tokens, 15 channels", 10, 15, 2, 5),
        _case("channels of one number", 8, 12, 3, 4, is_edge=True),
    ],
    examples=[
        {
            "numbers": np.array([[0, 9], [1.2, 8], [3, 6], [10, 0], [13.6, 1], [16, 2.7]], float),
            "bits": 2,
            "group": 3,
        },
        {"numbers": np.array([[0, 9, 1], [1.2, 8, 4.4], [3, 6, 7]], float), "bits": 2, "group": 3},
    ],
    result="(tokens, channels)",
    tried_on="{numbers[0]} tokens of {numbers[1]} channels",
)
