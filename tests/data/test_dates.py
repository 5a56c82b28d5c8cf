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
    "hu": {"1987. október 5., hétfő", "1987. október 5.", "1987. okt. 5."},
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


def test_date_splits_hold_out_years_and_languages(splits):
    assert [len(part) for part in splits] == [20_000, 2_000, 2_000]
    seen, held_out, other = ({int(pair.target[:4]) for pair in part} for part in splits)
    assert held_out == other
    assert not seen & held_out
    assert seen | held_out == set(DATE_YEARS)
    assert len(held_out) == 15
    assert {year % 10 for year in seen} == set(range(10))  # they are scattered
    assert [{pair.language for pair in part} for part in splits] == [
        set(DATE_LANGUAGES),
        set(DATE_LANGUAGES),
        set(HELD_OUT_LANGUAGES),
    ]
    assert not set(DATE_LANGUAGES) & set(HELD_OUT_LANGUAGES)


def test_date_splits_use_a_modest_set_of_characters(splits):
    characters = set("".join(pair.source for pair in splits.training))
    assert not set("".join(pair.source for part in splits for pair in part)) - characters
    assert [letter for letter in characters if letter.isspace()] == [" "]
    for pair in splits.training:
        assert pair.source == " ".join(unicodedata.normalize("NFC", pair.source).split())
        assert datetime.date.fromisoformat(pair.target).isoformat() == pair.target


def test_date_splits_depend_on_the_seed():
    first = date_splits(100, 30, seed=1)
    assert first == date_splits(100, 30, seed=1)
    assert [len(part) for part in first] == [100, 30, 30]
    assert not set(first.training) & set(date_splits(100, 30, seed=0).training)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: date_pairs(["english"]), ValueError, r"^Babel does not know the language 'english'"),
        (lambda: date_pairs("en"), TypeError, r"^languages is the string 'en'"),
        (lambda: date_pairs({"en", "de"}), TypeError, r"^languages is a set, whose order differs"),
        (lambda: date_pairs([]), ValueError, r"^languages is empty"),
        (lambda: date_pairs(["de", "en", "de"]), ValueError, r"^languages holds 'de' twice"),
        (lambda: date_pairs(["ja"]), ValueError, r"^In 'ja' no format of a date has the month"),
        (lambda: date_pairs(["en"], 1987), TypeError, r"^years is 1987"),
        (lambda: date_pairs(["en"], b"1987"), TypeError, r"^years is a string"),
        (lambda: date_pairs(["en"], [1987, 1987]), ValueError, r"^years holds 1987 twice"),
        (lambda: date_pairs(["en", "de"], [1987], 731), ValueError, r"^731 dates are up to 366 in each language,"),
        (lambda: date_splits(10, 11_000), ValueError, r"^11000 dates are up to 5500 in each language"),
    ],
)
def test_date_pairs_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
