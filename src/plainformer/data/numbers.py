"""Whole numbers in words."""

from collections.abc import Sequence

import numpy as np

from plainformer.checks import checked
from plainformer.data.languages import plain
from plainformer.data.lists import check_list


@checked
def number_words(numbers: Sequence[int], language: str = "en") -> list[str]:
    """Write whole numbers in words, as num2words has it: 21 is "twenty-one".

    **Raises** `ValueError` if num2words does not know the language, or has no words for a number as large.
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
        except (OverflowError, NotImplementedError, LookupError, ValueError) as error:
            raise ValueError(f"num2words has no words for {number} in {language!r}: {error}.") from error
    return words
