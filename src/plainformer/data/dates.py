"""Dates written out in many languages, from what Babel brings with it: nothing is downloaded."""

import datetime
import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plainformer.checks import check_list, check_positive
from plainformer.data.languages import locales, plain
from plainformer.data.windows import check_seed

# With these, no date means two days: Croatian, in which "listopad" is October, cannot stand beside Polish and Czech, in
# which it is November. All have the Latin alphabet, and the dates of the held-out ones no character of their own.
DATE_LANGUAGES = ("ca", "cs", "da", "de", "en", "et", "fi", "fr", "hu", "id", "it", "lv", "pl", "pt", "ro", "sv", "tr")
HELD_OUT_LANGUAGES = ("es", "nl")
DATE_YEARS = range(1900, 2050)


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


def date_pairs(
    languages: Sequence[str] = DATE_LANGUAGES,
    years: Sequence[int] = DATE_YEARS,
    num_dates: int = 20_000,
    *,
    seed: int = 0,
) -> list[DatePair]:
    r"""Write dates out in many languages, as the Unicode Consortium's CLDR has it, each beside its ISO form.

    A date has one of its language's full, long and medium formats, drawn at random from those in which the month is
    a word: the full one begins or ends with the day of the week. All are of the Gregorian calendar. White space is a
    plain space, also where CLDR has one that does not break. CLDR changes a little between versions of Babel, so no
    number computed from these texts is the same everywhere to the last digit.

    **Arguments**

    - `languages`: Babel's names for them, such as `"de"`; each has its share of the dates, equal but for one.
    - `years`: those to draw days from, every day with equal chance and at most once per language.
    - `num_dates`: how many dates, in all languages together.
    - `seed`: for other dates, at least 0.

    **Returns** the pairs, in random order. In the languages of `DATE_LANGUAGES` and `HELD_OUT_LANGUAGES` a text means
    one day, whichever language it is in; others may disagree, as Croatian and Polish do about "listopada".

    **Raises** `ValueError` if Babel does not know a language, or none of its formats has the month as a word, if a
    language or year occurs twice, or if the years have too few days; `TypeError` if a year is not a whole number.
    """
    formats = {language: _formats_in_words(language, locale) for language, locale in locales(languages).items()}
    check_positive(num_dates=num_dates)
    check_seed(seed)
    days = _days_of(years)
    most = -(-num_dates // len(formats))
    if most > len(days):
        raise ValueError(
            f"{num_dates} dates are up to {most} in each language, but the years have {len(days)} days. "
            "Take fewer dates, more languages or more years."
        )
    random = np.random.default_rng(seed)
    pairs = []
    for place, language in enumerate(formats):
        num_here = len(range(place, num_dates, len(formats)))
        which = random.integers(len(formats[language]), size=num_here)
        for day, chosen in zip(random.choice(days, num_here, replace=False), which, strict=True):
            date = datetime.date.fromordinal(int(day))
            pairs.append(DatePair(_written(date, formats[language][chosen], language), date.isoformat(), language))
    return [pairs[place] for place in random.permutation(len(pairs))]


def date_splits(num_training: int = 20_000, num_held_out: int = 2_000, *, seed: int = 0) -> DateSplits:
    r"""Return dates to learn to translate, and two sets to test on that hold out more than single dates.

    Held out are whole years, about one in ten of `DATE_YEARS`, chosen by a checksum of the year: the same for every
    seed. So no target of a test occurs in training. The last part is moreover in `HELD_OUT_LANGUAGES`, of which there
    is no text in training, though there is of close relatives: Catalan, Portuguese and Italian for Spanish, German,
    English and Danish for Dutch. It differs from the second part by its languages only: both have the held-out years.

    **Arguments** the number of pairs in training, and in each of the two parts held out; `seed` for other dates.

    **Returns** the three parts, each as `date_pairs` returns it. **Raises** as `date_pairs`.
    """
    check_seed(seed)
    check_positive(num_training=num_training, num_held_out=num_held_out)
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
        width = re.search("MMMM?|LLLL?", locale.date_formats[name].pattern)
        if width:
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
        check_positive(year=year)
    if len(set(years)) < len(years):
        raise ValueError("years holds one of them twice; expected each once.")
    ends = [(datetime.date(int(year), 1, 1), datetime.date(int(year), 12, 31)) for year in years]
    return np.array([day for first, last in ends for day in range(first.toordinal(), last.toordinal() + 1)], np.int64)
