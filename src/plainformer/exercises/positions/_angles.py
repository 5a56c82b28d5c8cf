"""Angles, a position times a frequency each, and the mistakes in them that several exercises share."""

import numpy as np

from plainformer.exercises.model import Mistake


def right_frequencies(d):
    """Return one frequency for each pair of columns: 1 for pair 0, and slower from pair to pair."""
    return 10_000.0 ** (-2 * np.arange(d // 2) / d)


def side_by_side(*halves):
    """Return the columns of the one, then those of the other."""
    return np.concatenate(halves, axis=-1)


def taking_turns(even, odd):
    """Return the columns of the one between those of the other."""
    return np.stack([even, odd], axis=-1).reshape(len(even), -1)


FREQUENCIES = [
    Mistake(
        "the 2 is missing from your exponent: you divide by 10000^(i / d)",
        "There are d / 2 pairs. How slow is the last one of many, if the exponent only goes up to 1/2?",
        frequencies=lambda d: 10_000.0 ** (-np.arange(d // 2) / d),
    ),
    Mistake(
        "all pairs turn by the same angle",
        "Does i change the exponent in your code? In Python, what is 2 * i // d?",
        frequencies=lambda d: np.ones(d // 2),
    ),
    Mistake(
        "you count the pairs from 1, so the frequency of the first pair is not 1",
        "What is 10000 to the power of 0, and which pair should have that frequency?",
        frequencies=lambda d: 10_000.0 ** (-2 * (np.arange(d // 2) + 1) / d),
    ),
    Mistake(
        "the last pair has frequency 1 / 10000 exactly: you divide i by the number of pairs less one",
        "The exponent is 2i / d. What is it for the last pair, i = d / 2 - 1?",
        frequencies=lambda d: 10_000.0 ** (-np.arange(d // 2) / (d / 2 - 1)),
    ),
    Mistake(
        "your pairs turn faster and faster: you multiply by 10000^(2i / d), where you should divide by it",
        "Which pair should be the slowest, the first or the last?",
        frequencies=lambda d: 10_000.0 ** (2 * np.arange(d // 2) / d),
    ),
]
ANGLES = [
    Mistake(
        "your angle is in degrees: you divide by 180 and multiply by pi",
        "NumPy's sine takes radians, and so does the formula. What is left to convert?",
        angle=lambda positions, f: np.radians(positions * f),
    ),
    Mistake(
        "you multiply the angle by 2 pi",
        "Position 1 turns pair 0 by one radian. Is that a whole turn?",
        angle=lambda positions, f: 2 * np.pi * positions * f,
    ),
    Mistake(
        "you count positions from 1: row n is treated as if it stood at n + 1",
        "By which angle should position 0 turn?",
        place=lambda positions: positions + 1,
    ),
]
OWN_COUNT = [
    Mistake(
        "you count the rows; the positions that you are given play no part",
        "The second half of a sentence may come alone. Where do you learn that its first row stands at 20?",
        place=lambda positions: np.arange(len(positions)),
    )
]
