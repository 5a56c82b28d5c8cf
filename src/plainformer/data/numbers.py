"""Whole numbers in words."""

from collections.abc import Sequence

import numpy as np

from plainformer.checks import check_list
from plainformer.data.languages import plain


def number_words(numbers: Sequence[int], language: str = "en") -> list[str]:
    r"""Write whole numbers in words, as num2words has it: 21 is "twenty-one".

    **Arguments** a list of whole numbers, and num2words' name of a language, such as `"en"` or `"fr"`.

    **Raises** `ValueError` if num2words does not know the language, or has no words for a number as large;
    `TypeError` if a number is not a whole number.
    """
    import num2words

    check_list("numbers", numbers, "whole numbers")
    if language not in num2words.CONVERTER_CLASSES:
        known = ", ".join(sorted(num2words.CONVERTER_CLASSES))
        raise ValueError(f"num2words does not know the language {language!r}; expected one of {known}.")
    return [_words(number, language) for number in numbers]


def _words(number: int, language: str) -> str:
    import num2words

    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(f"numbers holds {number!r}; expected whole numbers.")
    try:
        return plain(num2words.num2words(int(number), lang=language))
    except (OverflowError, NotImplementedError, LookupError, ValueError) as error:
        raise ValueError(f"num2words has no words for {number} in {language!r}: {error}.") from error
