"""Whole numbers in words."""

import pytest

from plainformer.data.numbers import number_words


def test_number_words_in_several_languages():
    assert number_words([0, 7, 21, -3]) == ["zero", "seven", "twenty-one", "minus three"]
    assert number_words(range(79, 82), "fr") == ["soixante-dix-neuf", "quatre-vingts", "quatre-vingt-un"]
    assert number_words((4, 42), "de") == ["vier", "zweiundvierzig"]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: number_words([1], "xx"),
            ValueError,
            r"^num2words does not know the language 'xx'; expected one of am, ",
        ),
        (lambda: number_words([3, 1.5]), TypeError, r"^numbers holds 1.5; expected whole numbers"),
        (lambda: number_words([True]), TypeError, r"^numbers holds True; expected whole numbers"),
        (lambda: number_words(7), TypeError, r"^numbers is 7; expected a list of whole numbers"),
        (lambda: number_words([-3], "cs"), ValueError, r"^num2words has no words for -3 in 'cs': "),
        (lambda: number_words([10**400]), ValueError, r"^num2words has no words for 10{400} in 'en': "),
    ],
)
def test_number_words_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
