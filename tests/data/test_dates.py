"""Dates in many languages."""

import datetime
import itertools
import unicodedata
from collections import Counter, defaultdict

import pytest

from plainformer.data import dates
from plainformer.data.dates import DATE_LANGUAGES, DATE_YEARS, HELD_OUT_LANGUAGES, date_pairs, date_splits
from plainformer.data.languages import locales

# What one Monday is called, in every format: these have been the same in CLDR for a decade.
WRITTEN = {
    "en": {"Monday, October 5, 1987", "October 5, 1987", "Oct 5, 1987"},
    "de": {"Montag, 5. Oktober 1987", "5. Oktober 1987"},
    "fr": {"lundi 5 octobre 1987", "5 octobre 1987", "5 oct. 1987"},
    "es": {"lunes, 5 de octubre de 1987", "5 de octubre de 1987", "5 oct 1987"},
    "hu": {"1987. október 5., hétfő", "1987. október 5.", "1987. okt. 5."},
    "fi": {"maanantai 5. lokakuuta 1987", "5. lokakuuta 1987"},
}


@pytest.fixture(scope="module")
def splits():
    return date_splits()


def every_text(language, days):
    for form, day in itertools.product(dates._formats_in_words(language, locales([language])[language]), days):
        yield dates._written(day, form, language), day


@pytest.mark.parametrize("language", sorted(WRITTEN))
def test_date_pairs_are_written_as_in_that_language(language):
    texts = {text for text, _ in every_text(language, [datetime.date(1987, 10, 5)])}
    assert texts == WRITTEN[language]
    # All days of one year: each of its formats is drawn, and every day once.
    pairs = date_pairs([language], [1987], 365)
    assert len({pair.target for pair in pairs}) == 365
    assert {pair.language for pair in pairs} == {language}
    (today,) = (pair.source for pair in pairs if pair.target == "1987-10-05")
    assert today in texts
    lengths = {len(pair.source.split()) for pair in pairs}
    assert lengths == {len(text.split()) for text in texts}


def test_date_pairs_share_the_dates_among_languages_and_days():
    pairs = date_pairs(["de", "en", "fr"], [1999, 2004], 1_001)
    assert Counter(pair.language for pair in pairs) == {"de": 334, "en": 334, "fr": 333}
    assert len({(pair.language, pair.target) for pair in pairs}) == 1_001
    assert {pair.target[:4] for pair in pairs} == {"1999", "2004"}
    months = Counter(pair.target[5:7] for pair in pairs)
    assert len(months) == 12
    assert min(months.values()) > 50
    # In random order: no language stands all before another.
    assert len({pair.language for pair in pairs[:20]}) == 3


def test_date_pairs_depend_on_their_arguments_alone():
    first = date_pairs(["en", "sv"], range(1950, 1960), 50, seed=3)
    assert date_pairs(("en", "sv"), list(range(1950, 1960)), 50, seed=3) == first
    assert date_pairs(["en", "sv"], range(1950, 1960), 50, seed=4) != first
    assert date_pairs(["en"], [7], 1)[0].target.startswith("0007-")


def test_date_pairs_every_text_means_one_day():
    # The year is written out, so two days that share a text share the year: a leap year that begins on a Saturday,
    # and one without a 29th of February, hold every month, every day of it and every day of the week.
    meant = defaultdict(set)
    for year in (1987, 2000):
        start = datetime.date(year, 1, 1)
        days = [day for day in (start + datetime.timedelta(n) for n in range(366)) if day.year == year]
        for language in (*DATE_LANGUAGES, *HELD_OUT_LANGUAGES):
            for text, day in every_text(language, days):
                assert str(year) in text
                assert any(letter.isalpha() for letter in text)
                meant[text].add(day)
    assert not {text: days for text, days in meant.items() if len(days) > 1}
    assert len(meant) > 30_000


def test_date_pairs_of_croatian_and_polish_would_disagree():
    croatian = dates._written(datetime.date(1987, 10, 5), "long", "hr")
    polish = dates._written(datetime.date(1987, 11, 5), "long", "pl")
    assert (croatian, polish) == ("5. listopada 1987.", "5 listopada 1987")
    assert "hr" not in (*DATE_LANGUAGES, *HELD_OUT_LANGUAGES)


def test_date_splits_hold_out_years_and_languages(splits):
    assert [len(part) for part in splits] == [20_000, 2_000, 2_000]
    seen, held_out, other = ({int(pair.target[:4]) for pair in part} for part in splits)
    assert held_out == other
    assert not seen & held_out
    assert seen | held_out == set(DATE_YEARS)
    assert len(held_out) == 15
    # Scattered: the longest stretch without one is no third of all, and every last digit was seen in training.
    years = [DATE_YEARS[0], *sorted(held_out), DATE_YEARS[-1]]
    assert max(later - earlier for earlier, later in itertools.pairwise(years)) < 50
    assert {year % 10 for year in seen} == set(range(10))
    assert [{pair.language for pair in part} for part in splits] == [
        set(DATE_LANGUAGES),
        set(DATE_LANGUAGES),
        set(HELD_OUT_LANGUAGES),
    ]
    assert len(DATE_LANGUAGES) >= 12
    assert not set(DATE_LANGUAGES) & set(HELD_OUT_LANGUAGES)


def test_date_splits_use_a_modest_set_of_characters(splits):
    characters = set("".join(pair.source for pair in splits.training))
    assert len(characters) < 110
    assert not set("".join(pair.source for part in splits for pair in part)) - characters
    assert [letter for letter in characters if letter.isspace()] == [" "]
    for pair in splits.training:
        assert pair.source == " ".join(unicodedata.normalize("NFC", pair.source).split())
        assert datetime.date.fromisoformat(pair.target).isoformat() == pair.target
    assert max(len(pair.source) for part in splits for pair in part) <= 48


def test_date_splits_depend_on_the_seed():
    first = date_splits(100, 30, seed=1)
    assert first == date_splits(100, 30, seed=1)
    assert [len(part) for part in first] == [100, 30, 30]
    assert not set(first.training) & set(date_splits(100, 30, seed=0).training)


@pytest.mark.usefixtures("unchecked")
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
        (lambda: date_pairs(["de", "en", "de"]), ValueError, r"^languages holds 'de' twice; expected each once"),
        (lambda: date_pairs(["ja"]), ValueError, r"^In 'ja' no format of a date has the month as a word; leave it out"),
        (lambda: date_pairs(["vi"]), ValueError, r"^In 'vi' no format of a date has the month as a word"),
        (lambda: date_pairs(["en"], 1987), TypeError, r"^years is 1987; expected a list of years"),
        (lambda: date_pairs(["en"], ["1987"]), TypeError, r"^year is '1987'; expected a whole number, from 1 to 9999"),
        (lambda: date_pairs(["en"], [0]), ValueError, r"^year is 0; expected from 1 to 9999"),
        (lambda: date_pairs(["en"], [10_000]), ValueError, r"^year is 10000; expected from 1 to 9999"),
        (lambda: date_pairs(["en"], [[1987]]), TypeError, r"^year is \[1987\]; expected a whole number"),
        (lambda: date_pairs(["en"], b"1987"), TypeError, r"^years is a string; expected a list of years"),
        (lambda: date_pairs(["en"], [10_000]), ValueError, r"^year .*10000"),
        (lambda: date_pairs(["en"], [1987, 1987]), ValueError, r"^years holds 1987 twice; expected each once"),
        (lambda: date_pairs(["en"], []), ValueError, r"but the years have 0 days"),
        (
            lambda: date_pairs(["en", "de"], [1987], 731),
            ValueError,
            r"^731 dates are up to 366 in each language, but the years have 365 days. Take fewer dates, more",
        ),
        (lambda: date_pairs(num_dates=0), ValueError, r"^num_dates is 0; expected at least 1"),
        (lambda: date_pairs(num_dates=1.5), TypeError, r"^num_dates is 1.5; expected a whole number"),
        (lambda: date_pairs(seed=-1), ValueError, r"^seed is -1; expected at least 0 and below"),
        (lambda: date_splits(seed=None), TypeError, r"^seed is None; expected a whole number"),
        (lambda: date_splits(0), ValueError, r"^num_training is 0; expected at least 1"),
        (lambda: date_splits(10, 0), ValueError, r"^num_held_out is 0; expected at least 1"),
        (lambda: date_splits(10, 11_000), ValueError, r"^11000 dates are up to 5500 in each language"),
        (lambda: date_splits(10_000_000, 10), ValueError, r"^10000000 dates are up to .* Take fewer dates"),
    ],
)
def test_date_pairs_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
