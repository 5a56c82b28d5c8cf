"""The mistakes in sinusoids and their shift that the exercises know by name.

An angle is a position times a frequency; the first two lists are about these and serve several exercises.
"""

import numpy as np

from plainformer.exercises.exercise import Mistake


def right_frequencies(d):
    """One frequency for each pair of columns: 1 for pair 0, and slower from pair to pair."""
    return 10_000.0 ** (-2 * np.arange(d // 2) / d)


def side_by_side(*halves):
    """The columns of the one, then those of the other."""
    return np.concatenate(halves, axis=-1)


def taking_turns(even, odd):
    """The columns of the one between those of the other."""
    return np.stack([even, odd], axis=-1).reshape(len(even), -1)


def _by_column(angles, d, first=np.sin, second=np.cos):
    """Sine in even, cosine in odd columns, of angles that have a column each."""
    return np.where(np.arange(d) % 2 == 0, first(angles), second(angles))


def _cosine_first(angles, d):
    return _by_column(angles, d, np.cos, np.sin)


FREQUENCIES = [
    Mistake(
        "frequencies",
        "the 2 is missing from your exponent: you divide by 10000^(i / d)",
        "There are d / 2 pairs. How slow is the last one of many, if the exponent only goes up to 1/2?",
        lambda d: 10_000.0 ** (-np.arange(d // 2) / d),
    ),
    Mistake(
        "frequencies",
        "all pairs turn by the same angle",
        "Does i change the exponent in your code? In Python, what is 2 * i // d?",
        lambda d: np.ones(d // 2),
    ),
    Mistake(
        "frequencies",
        "you count the pairs from 1, so the frequency of the first pair is not 1",
        "What is 10000 to the power of 0, and which pair should have that frequency?",
        lambda d: 10_000.0 ** (-2 * (np.arange(d // 2) + 1) / d),
    ),
    Mistake(
        "frequencies",
        "the last pair has frequency 1 / 10000 exactly: you divide i by the number of pairs less one",
        "The exponent is 2i / d. What is it for the last pair, i = d / 2 - 1?",
        lambda d: 10_000.0 ** (-np.arange(d // 2) / (d / 2 - 1)),
    ),
    Mistake(
        "frequencies",
        "your pairs turn faster and faster: you multiply by 10000^(2i / d), where you should divide by it",
        "Which pair should be the slowest, the first or the last?",
        lambda d: 10_000.0 ** (2 * np.arange(d // 2) / d),
    ),
]
ANGLES = [
    Mistake(
        "angle",
        "your angle is in degrees: you divide by 180 and multiply by pi",
        "NumPy's sine takes radians, and so does the formula. What is left to convert?",
        lambda positions, f: np.radians(positions * f),
    ),
    Mistake(
        "angle",
        "you multiply the angle by 2 pi",
        "Position 1 turns pair 0 by one radian. Is that a whole turn?",
        lambda positions, f: 2 * np.pi * positions * f,
    ),
    Mistake(
        "place",
        "you count positions from 1: row n is treated as if it stood at n + 1",
        "By which angle should position 0 turn?",
        lambda positions: positions + 1,
    ),
]
OWN_COUNT = [
    Mistake(
        "place",
        "you count the rows; the positions that you are given play no part",
        "The second half of a sentence may come alone. Where do you learn that its first row stands at 20?",
        lambda positions: np.arange(len(positions)),
    ),
]
SINUSOID = [
    Mistake(
        "place",
        "every row is the code of position 0: the positions play no part",
        "Which angle do you take the sine of, and where does the position enter?",
        lambda positions: 0 * positions,
    ),
    Mistake(
        "lay",
        "you lay all sines side by side, and then all cosines",
        "Columns 2i and 2i + 1 belong to the same frequency. What stands in columns 0 and 1?",
        lambda angles, d: side_by_side(np.sin(angles), np.cos(angles)),
    ),
    Mistake(
        "lay",
        "you lay all cosines side by side, and then all sines",
        "Columns 2i and 2i + 1 belong to the same frequency. What stands in columns 0 and 1?",
        lambda angles, d: side_by_side(np.cos(angles), np.sin(angles)),
    ),
    Mistake(
        "lay",
        "sine and cosine are swapped: your even columns hold the cosine",
        "At position 0 every sine is 0 and every cosine is 1. What should row 0 be?",
        lambda angles, d: taking_turns(np.cos(angles), np.sin(angles)),
    ),
    Mistake(
        "lay",
        "there are only sines: no column holds a cosine",
        "An angle and pi less the angle have the same sine. Which number tells them apart?",
        lambda angles, d: taking_turns(np.sin(angles), np.sin(angles)),
        {"frequencies": lambda d: 10_000.0 ** (-np.arange(d) / d), "lay": lambda angles, d: np.sin(angles)},
        {"frequencies": lambda d: 10_000.0 ** (-2 * np.arange(d) / d), "lay": lambda angles, d: np.sin(angles)},
        lambda angles, d: np.sin(angles),
    ),
    Mistake(
        "frequencies",
        "you take the number of the column for i, which counts pairs of columns: half of your columns hardly move",
        "Which i do columns 2 and 3 share?",
        {"frequencies": lambda d: 10_000.0 ** (-2 * np.arange(d) / d), "lay": _by_column},
    ),
    Mistake(
        "frequencies",
        "the cosine of a pair has another frequency than its sine: the exponent is column / d in every column",
        "Sine and cosine of a pair belong to one angle. Which exponent do columns 2 and 3 share?",
        {"frequencies": lambda d: 10_000.0 ** (-np.arange(d) / d), "lay": _by_column},
    ),
    Mistake(
        "lay",
        "you count the columns from 1: the first is a cosine, and the sine of the pair comes with the next frequency",
        "With columns 1, 2, 3 and 4, which have an even number, and which of them belong together?",
        {"frequencies": lambda d: 10_000.0 ** (-2 * (np.arange(1, d + 1) // 2) / d), "lay": _cosine_first},
        {"frequencies": lambda d: 10_000.0 ** (-2 * np.arange(1, d + 1) / d), "lay": _cosine_first},
        {"frequencies": lambda d: 10_000.0 ** (-np.arange(1, d + 1) / d), "lay": _cosine_first},
    ),
    Mistake(
        "finish",
        "your result is transposed: it has one column for each position",
        "The code of a token is added to its row of x. Which axis of your result counts the tokens?",
        lambda codes: codes.T,
    ),
]


def on_the_diagonal(blocks):
    """The right place for the 2 x 2 blocks, `(pairs, 2, 2)`."""
    pairs = len(blocks)
    matrix = np.zeros((pairs, 2, pairs, 2))
    matrix[np.arange(pairs), :, np.arange(pairs), :] = blocks
    return matrix.reshape(2 * pairs, 2 * pairs)


def _in_quarters(blocks):
    pairs = len(blocks)
    return on_the_diagonal(blocks).reshape(pairs, 2, pairs, 2).transpose(1, 0, 3, 2).reshape(2 * pairs, -1)


SHIFT = [
    Mistake(
        "finish",
        "your matrix is the identity: it takes p(n) to itself",
        "By which angle should the first pair turn, for k = 1?",
        lambda matrix, offset: np.eye(len(matrix)),
    ),
    Mistake(
        "block",
        "your matrix turns back: p(n) R is p(n - k), not p(n + k). R transposed would do",
        "p(n) is a row and stands on the left, with its sine first. Which sum gives sin(a + t), and in which column?",
        lambda c, s: [[c, s], [-s, c]],
    ),
    Mistake(
        "block",
        "both sines of a block have the same sign, so the matrix does not turn",
        "sin(a + t) and cos(a + t) are sums of products. Which of the four products has a minus?",
        lambda c, s: [[c, s], [s, c]],
        lambda c, s: [[c, -s], [-s, c]],
    ),
    Mistake(
        "block",
        "one of your cosines is negative: the matrix mirrors, and does not turn",
        "What should the matrix be for k = 0?",
        lambda c, s: [[c, s], [s, -c]],
        lambda c, s: [[-c, s], [s, c]],
    ),
    Mistake(
        "block",
        "sine and cosine change places in your blocks",
        "What should the matrix be for k = 0, where every sine is 0 and every cosine is 1?",
        lambda c, s: [[s, c], [-c, s]],
        lambda c, s: [[s, -c], [c, s]],
        lambda c, s: [[s, c], [c, -s]],
        lambda c, s: [[s, c], [c, s]],
    ),
    Mistake(
        "block",
        "there are only cosines in your matrix: the sine and the cosine of a pair never meet",
        "sin(a + t) is a sum of two products. What is the second?",
        lambda c, s: [[c, 0 * s], [0 * s, c]],
    ),
    Mistake(
        "lay",
        "your matrix is made for codes with all sines first and then all cosines",
        "Here columns 2i and 2i + 1 are a pair. Which entries of the matrix join columns 0 and 1?",
        _in_quarters,
    ),
    Mistake(
        "finish",
        "you move the columns along (a permutation), where each pair of columns should turn",
        "Column 0 of p(n + k) is sin(n + k). Of which two columns of p(n) can you make it?",
        lambda matrix, offset: np.roll(np.eye(len(matrix)), offset, axis=1),
        lambda matrix, offset: np.roll(np.eye(len(matrix)), -offset, axis=1),
        lambda matrix, offset: np.roll(np.eye(len(matrix)), 2 * offset, axis=1),
        lambda matrix, offset: np.roll(np.eye(len(matrix)), -2 * offset, axis=1),
        lambda matrix, offset: np.eye(len(matrix), k=offset),
        lambda matrix, offset: np.eye(len(matrix), k=-offset),
    ),
    Mistake(
        "place",
        "you shift by one position, whatever k is",
        "Which argument have you not used?",
        lambda offset: 1,
    ),
]
