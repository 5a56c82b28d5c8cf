"""What the readers of CLDR and of num2words say to bad input."""

import pytest

from plainformer.data.dates import date_pairs, date_splits, name_splits, names_by_language, number_words

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: date_pairs(["english"]),
            ValueError,
            r"^Babel does not know the language 'english'; expected a name such",
        ),
        (lambda: date_pairs(["d e"]), ValueError, r"^Babel does not know the language 'd e'"),
        (lambda: date_pairs("en"), TypeError, r"^languages is the string 'en'; expected a collection"),
        (lambda: date_pairs({"en", "de"}), TypeError, r"^languages is a set, whose order differs"),
        (lambda: date_pairs([]), ValueError, r"^languages is empty; expected at least one"),
        (lambda: date_pairs(["de", "en", "de"]), ValueError, r"^languages names 'de' twice"),
        (lambda: date_pairs(["ja"]), ValueError, r"^In 'ja' no format of a date has the month as a word; leave it out"),
        (lambda: date_pairs(["vi"]), ValueError, r"^In 'vi' no format of a date has the month as a word"),
        (lambda: date_pairs(["en"], 1987), TypeError, r"^years is 1987; expected a list of years"),
        (lambda: date_pairs(["en"], ["1987"]), TypeError, r"^years holds '1987'; expected whole numbers"),
        (lambda: date_pairs(["en"], [0]), ValueError, r"^years holds 0; expected 1 to 9999"),
        (lambda: date_pairs(["en"], [1987, 1987]), ValueError, r"^years holds one of them twice"),
        (lambda: date_pairs(["en"], []), ValueError, r"but the years have 0 days"),
        (
            lambda: date_pairs(["en", "de"], [1987], 731),
            ValueError,
            r"^731 dates are up to 366 in each language, but the years have 365 days. Take fewer dates, more",
        ),
        (lambda: date_pairs(num_dates=0), ValueError, r"^num_dates is 0; expected at least 1"),
        (lambda: date_pairs(num_dates=1.5), TypeError, r"^num_dates is 1.5; expected a whole number"),
        (lambda: date_pairs(seed=-1), ValueError, r"^seed is -1; expected a whole number, at least 0"),
        (lambda: date_splits(seed=None), ValueError, r"^seed is None; expected a whole number"),
        (lambda: date_splits(0), ValueError, r"^num_training is 0; expected at least 1"),
        (lambda: date_splits(10, 0), ValueError, r"^num_held_out is 0; expected at least 1"),
        (lambda: date_splits(10, 20_000), ValueError, r"^20000 dates are up to 10000 in each language"),
        (lambda: date_splits(10_000_000, 10), ValueError, r"^10000000 dates are up to .* Take fewer dates"),
    ],
)
def test_date_pairs_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("function", [names_by_language, name_splits])
def test_names_by_language_bad_input(function):
    with pytest.raises(ValueError, match=r"^Babel does not know the language 'klingon'"):
        function(["en", "klingon"])
    with pytest.raises(ValueError, match=r"^languages names 'en' twice"):
        function(["en", "en"])
    with pytest.raises(TypeError, match=r"^languages is the string 'en'"):
        function("en")


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
