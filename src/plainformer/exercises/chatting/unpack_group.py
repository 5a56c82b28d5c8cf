"""Exercise `unpack_group`: numbers from a group of codes, a step and a least number."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _low_then_high(codes):
    """The codes of the first half from what is left after division by 16, of the second from how often it goes."""
    return np.concatenate([codes % 16, codes // 16])


def unpack_group(
    packed,
    step,
    least,
    *,
    split=_low_then_high,
    scale=lambda numbers, step: numbers * step,
    shift=lambda numbers, step, least: numbers + least,
):
    """Return the numbers of a group, `(2 * bytes,)`."""
    return shift(scale(split(np.asarray(packed, np.int64)), step), step, least)


MISTAKES = [
    Mistake(
        "the two codes of a byte stand side by side in your result",
        "Which two numbers share a byte: number i and number i + 1, or number i and one half a group further?",
        split=lambda codes: np.stack([codes % 16, codes // 16], axis=1).reshape(-1),
    ),
    Mistake(
        "the two codes of a byte are exchanged",
        "Byte 0x7A: which of its two digits is what is left after division by 16?",
        split=lambda codes: np.concatenate([codes // 16, codes % 16]),
    ),
    Mistake(
        "the high code is not divided by 16",
        "How large can a code of four bits be at most?",
        split=lambda codes: np.concatenate([codes % 16, codes - codes % 16]),
    ),
    Mistake(
        "you forgot the least number",
        "Which number has the code 0?",
        shift=lambda numbers, step, least: numbers,
    ),
    Mistake(
        "you count codes from -8, as in groups that have no least number",
        "Which number has the code 0, by the equation?",
        shift=lambda numbers, step, least: numbers - 8 * step,
    ),
    Mistake(
        "you divide by the step",
        "How far apart are the numbers of two neighbouring codes?",
        scale=lambda numbers, step: numbers / step,
    ),
]

_RNG = np.random.default_rng(4)


def _case(name, size, is_edge=False):
    given = {"packed": _RNG.integers(0, 256, size).astype(np.uint8), "step": 0.1 * size / 4, "least": -0.7 - size / 10}
    return Case(name, given, is_edge)


EXERCISE = Exercise(
    unpack_group,
    MISTAKES,
    cases=[_case("16 bytes", 16), _case("12 bytes", 12), _case("5 bytes", 5), _case("a single byte", 1, is_edge=True)],
    examples=[{"packed": np.array([0x21, 0x43], np.uint8), "step": 0.5, "least": -1.0}],
    result="(2 * bytes,)",
    tried_on="a group of {packed[0]} bytes",
)
