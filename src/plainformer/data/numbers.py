"""Whole numbers in words, and pairs of them to learn to translate."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plainformer.checks import Natural, Positive, checked
from plainformer.data.languages import plain
from plainformer.data.lists import check_list


class NumberPair(NamedTuple):
    """A `number` in words: of some language, `source`, and of English, `target`."""

    source: str
    target: str
    number: int


class NumberSplits(NamedTuple):
    """Pairs for `training` and `validation`, pairs with a `new_combination` of digits, and `longer` ones."""

    training: list[NumberPair]
    validation: list[NumberPair]
    new_combination: list[NumberPair]
    longer: list[NumberPair]


@checked
def number_words(numbers: Sequence[int], language: str = "en") -> list[str]:
    """Write whole numbers in words, as num2words has it: 21 is "twenty-one".

    Raises:
        ValueError: if num2words does not know the language, or has no words for a number as large.
    """
    import num2words

    check_list("numbers", numbers, "whole numbers")
    if language not in num2words.CONVERTER_CLASSES:
        known = ", ".join(sorted(num2words.CONVERTER_CLASSES))
        raise ValueError(f"num2words does not know the language {language!r}; expected one of {known}.")
    words = []
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"numbers holds {number!r}; expected whole numbers.")
        try:
            words.append(plain(num2words.num2words(int(number), lang=language)))
        except (OverflowError, NotImplementedError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"num2words has no words for {number} in {language!r}: {error}.") from error
    return words


@checked
def number_splits(
    num_training: Positive = 1_000, num_held_out: Positive = 500, *, language: str = "de", seed: Natural = 0
) -> NumberSplits:
    """Return numbers in words to learn to translate into English, and three sets to test on.

    Training and validation are drawn from the numbers below 100,000, but for those in which tens and units, of the
    thousands or at the end, are two words and add up to 9: 27, 36, 45, 54, 63, 72, 81. The numbers of
    `new_combination` have at least one of these. So "vierundfünfzig" is in no training text, though
    "vier" and "fünfzig" are, in other company. The `longer` ones have six digits, and none of the combinations. No
    number is in two parts.

    Raises:
        ValueError: if num2words does not know the language, or there are not as many numbers.
    """
    short, long = np.arange(100_000), np.arange(100_000, 1_000_000)
    is_new = _has_new_combination(short)
    pools = {"numbers to learn from": short[~is_new], "new combinations": short[is_new]}
    wanted = dict(zip(pools, (num_training + num_held_out, num_held_out), strict=True))
    for name, pool in pools.items():
        if wanted[name] > len(pool):
            raise ValueError(
                f"There are {len(pool):,} {name}, and {wanted[name]:,} are wanted; take fewer: "
                f"num_training is {num_training:,}, num_held_out {num_held_out:,}."
            )
    random = np.random.default_rng(seed)
    known, new = (random.choice(pools[name], wanted[name], replace=False) for name in pools)
    longer = random.choice(long[~_has_new_combination(long)], num_held_out, replace=False)
    parts = known[:num_training], known[num_training:], new, longer
    return NumberSplits(*(_pairs(part.tolist(), language) for part in parts))


def _has_new_combination(numbers: np.ndarray) -> np.ndarray:
    """Where the tens and units of the number, or of its thousands, are two words and add up to 9."""
    ends = np.stack([numbers % 100, numbers // 1000 % 100])
    tens, units = np.divmod(ends, 10)
    return ((tens >= 2) & (units >= 1) & (tens + units == 9)).any(axis=0)


def _pairs(numbers: list[int], language: str) -> list[NumberPair]:
    words = number_words(numbers, language), number_words(numbers)
    return [NumberPair(*each) for each in zip(*words, numbers, strict=True)]
