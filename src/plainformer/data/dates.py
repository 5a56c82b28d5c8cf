"""Dates written out in many languages, from what Babel brings with it: nothing is downloaded."""

import calendar
import datetime
import re
import zlib
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from plainformer.checks import Natural, Number, Positive, check_each, checked
from plainformer.data.languages import locales, plain
from plainformer.data.lists import check_list, check_once

# With these, no date means two days: Croatian, in which "listopad" is October, cannot stand beside Polish and Czech, in
# which it is November. All have the Latin alphabet, and the dates of the held-out ones no character of their own.
DATE_LANGUAGES = ("ca", "cs", "da", "de", "en", "et", "fi", "fr", "hu", "id", "it", "lv", "pl", "pt", "ro", "sv", "tr")
HELD_OUT_LANGUAGES = ("es", "nl")
DATE_YEARS = range(1900, 2050)
Year = Annotated[int, Number(lambda year: 1 <= year <= 9999, "from 1 to 9999", whole=True)]


class DatePair(NamedTuple):
    """A date written out, `source`, the same date as ISO 8601 has it, `target`, and the `language` of the source."""

    source: str
    target: str
    language: str


class DateSplits(NamedTuple):
    """Pairs for `training`, of `held_out_years`, and of the same years in a `held_out_language`."""

    training: list[DatePair]
    held_out_years: list[DatePair]
    held_out_language: list[DatePair]


@checked
def date_pairs(
    languages: Sequence[str] = DATE_LANGUAGES,
    years: Sequence[int] = DATE_YEARS,
    num_dates: Positive = 20_000,
    *,
    seed: Natural = 0,
) -> list[DatePair]:
    """Write dates out in many languages, as the Unicode Consortium's CLDR has it, each beside its ISO form.

    A date has one of its language's full, long and medium formats, drawn at random from those in which the month is
    a word: the full one begins or ends with the day of the week. All are of the Gregorian calendar. White space is a
    plain space, also where CLDR has one that does not break. CLDR changes a little between versions of Babel, so no
    number computed from these texts is the same everywhere to the last digit.

    Each of the `languages`, by Babel's names for them, such as `"de"`, has its share of the dates, equal but for one:
    days of the `years`, each with equal chance and at most once per language. The pairs come in random order. In the
    languages of `DATE_LANGUAGES` and `HELD_OUT_LANGUAGES` a text means one day, whichever language it is in; others
    may disagree, as Croatian and Polish do about "listopada".

    Raises:
        ValueError: if Babel does not know a language, or none of its formats has the month as a word, if a language or
            year occurs twice, or if the years have too few days.
    """
    formats = {language: _formats_in_words(language, locale) for language, locale in locales(languages).items()}
    days = _days_of(years)
    most = -(-num_dates // len(formats))
    if most > len(days):
        found = f"{num_dates} dates are up to {most} in each language, but the years have {len(days)} days"
        raise ValueError(f"{found}. Take fewer dates, more languages or more years.")
    random = np.random.default_rng(seed)
    pairs = []
    for place, (language, forms) in enumerate(formats.items()):
        num_here = len(range(place, num_dates, len(formats)))
        which = random.integers(len(forms), size=num_here)
        for day, chosen in zip(random.choice(days, num_here, replace=False), which, strict=True):
            date = datetime.date.fromordinal(int(day))
            pairs.append(DatePair(_written(date, forms[chosen], language), date.isoformat(), language))
    return [pairs[place] for place in random.permutation(len(pairs))]


@checked
def date_splits(num_training: Positive = 20_000, num_held_out: Positive = 2_000, *, seed: Natural = 0) -> DateSplits:
    """Return dates to learn to translate, and two equally large sets to test on, which hold out more than dates.

    Held out are whole years, about one in ten of `DATE_YEARS`, chosen by a checksum of the year: the same for every
    seed. So no target of a test occurs in training. The last part is moreover in `HELD_OUT_LANGUAGES`, of which there
    is no text in training, though there is of close relatives: Catalan, Portuguese and Italian for Spanish, German,
    English and Danish for Dutch. It differs from the second part by its languages only: both have the held-out years.
    """
    held_out = [year for year in DATE_YEARS if zlib.crc32(str(year).encode()) % 10 == 0]
    seen = [year for year in DATE_YEARS if year not in held_out]
    return DateSplits(
        training=date_pairs(DATE_LANGUAGES, seen, num_training, seed=3 * seed),
        held_out_years=date_pairs(DATE_LANGUAGES, held_out, num_held_out, seed=3 * seed + 1),
        held_out_language=date_pairs(HELD_OUT_LANGUAGES, held_out, num_held_out, seed=3 * seed + 2),
    )


def _formats_in_words(language: str, locale) -> list[str]:
    """The formats in which the month is a word."""
    found = []
    for name in ("full", "long", "medium"):
        if width := re.search("MMMM?|LLLL?", locale.date_formats[name].pattern):
            months = locale.months["format"]["wide" if len(width[0]) == 4 else "abbreviated"].values()
            found += [name] * (not re.search(r"\d", " ".join(months)))
    if not found:
        raise ValueError(f"In {language!r} no format of a date has the month as a word; leave it out.")
    return found


def _written(date: datetime.date, form: str, language: str) -> str:
    from babel.dates import format_date

    return plain(format_date(date, form, locale=language))


def _days_of(years: Sequence[int]) -> np.ndarray:
    """The days of the years, as ordinals."""
    check_list("years", years, "years")
    for year in years:
        check_each(Year, year=year)
    check_once("years", years)
    days: list[int] = []
    for year in years:
        first = datetime.date(year, 1, 1).toordinal()
        days += range(first, first + 365 + calendar.isleap(year))
    return np.array(days, np.int64)
