"""Dates, names and numbers in many languages, from what Babel and num2words bring with them: nothing is downloaded."""

import datetime
import re
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from plainformer.checks import check_list, check_names, check_positive

# With these, no date means two days: Croatian, in which "listopad" is October, cannot stand beside Polish and Czech, in
# which it is November. All have the Latin alphabet, and the dates of the held-out ones no character of their own.
DATE_LANGUAGES = ("ca", "cs", "da", "de", "en", "et", "fi", "fr", "hu", "id", "it", "lv", "pl", "pt", "ro", "sv", "tr")
HELD_OUT_LANGUAGES = ("es", "nl")
DATE_YEARS = range(1900, 2050)
NAME_LANGUAGES = (
    *("cs", "cy", "da", "de", "en", "es", "et", "fi", "fr", "ga"),
    *("hr", "hu", "it", "lt", "nl", "pl", "pt", "ro", "sv", "tr"),
)


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


class LabelledName(NamedTuple):
    """A name, its `text`, the `language` it is in, and what it is the name of, a `concept` such as "territory FR"."""

    text: str
    language: str
    concept: str


class NameSplits(NamedTuple):
    """Names for `training`, names of other things for the `test`, and the texts left out as `shared` by languages."""

    training: list[LabelledName]
    test: list[LabelledName]
    shared: list[str]


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
    - `years`: those to draw days from, every day with equal chance and at most once for a language.
    - `num_dates`: how many dates, in all languages together.
    - `seed`: for other dates, at least 0.

    **Returns** the pairs, in random order. In the languages of `DATE_LANGUAGES` and `HELD_OUT_LANGUAGES` a text means
    one day, whichever language it is in; others may disagree, as Croatian and Polish do about "listopada".

    **Raises** `ValueError` if Babel does not know a language, or none of its formats has the month as a word, if a
    language or year occurs twice, or if the years have too few days; `TypeError` if a year is no whole number.
    """
    formats = {language: _formats_in_words(language) for language in _checked_languages(languages)}
    check_positive(num_dates=num_dates)
    _check_seed(seed)
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
    r"""Give dates to learn to translate, and two sets to test on that hold out more than single dates.

    Held out are whole years, about one in ten of `DATE_YEARS`, chosen by a checksum of the year: the same for every
    seed. So no target of a test occurs in training. The last part is moreover in `HELD_OUT_LANGUAGES`, of which there
    is no text in training, though there is of close relatives: Catalan, Portuguese and Italian for Spanish, German,
    English and Danish for Dutch. It differs from the second part by its languages only: both have the held-out years.

    **Arguments** the number of pairs in training, and in each of the two parts held out; `seed` for other dates.

    **Returns** the three parts, each as `date_pairs` gives it. **Raises** as `date_pairs`.
    """
    _check_seed(seed)
    check_positive(num_training=num_training, num_held_out=num_held_out)
    held_out = [year for year in DATE_YEARS if zlib.crc32(str(year).encode()) % 10 == 0]
    seen = [year for year in DATE_YEARS if year not in held_out]
    return DateSplits(
        training=date_pairs(DATE_LANGUAGES, seen, num_training, seed=3 * seed),
        held_out_years=date_pairs(DATE_LANGUAGES, held_out, num_held_out, seed=3 * seed + 1),
        held_out_language=date_pairs(HELD_OUT_LANGUAGES, held_out, num_held_out, seed=3 * seed + 2),
    )


def names_by_language(languages: Sequence[str] = NAME_LANGUAGES) -> list[LabelledName]:
    r"""Give the names that CLDR has for territories, languages, months and days of the week.

    A concept ends in CLDR's code, or in a number: "month 1" is January, "weekday 0" Monday. A month may have two
    forms, by itself and within a date, such as Polish "październik" and "października". White space and versions are
    as in `date_pairs`.

    **Arguments** Babel's names of the languages.

    **Returns** the names, language after language, a text at most once for each thing. The same text may stand there
    for several things and in several languages: `name_splits` leaves those out.

    **Raises** `ValueError` if Babel does not know a language or one occurs twice.
    """
    names = []
    for language in _checked_languages(languages):
        locale = _locale(language)
        found = [
            (text, f"{kind} {code}")
            for kind, table in _tables(locale)
            for code, text in sorted(table.items(), key=lambda item: str(item[0]))
            if code not in ("XA", "XB", "ZZ") and str(code) != text  # no places; no name
        ]
        names += [LabelledName(text, language, concept) for text, concept in dict.fromkeys(map(_plain_name, found))]
    return names


def name_splits(languages: Sequence[str] = NAME_LANGUAGES) -> NameSplits:
    r"""Give names to learn languages from, and names of other things to test on.

    Whole things are held out, about a quarter of them, chosen by a checksum of the concept: all names that languages
    have for Portugal are on one side. What is not held out are parts of words, so "Französisch" may be in training
    and "Frankreich" in the test. A text that occurs in more than one of the languages, whether in capitals or not,
    has no one right label, and is left out of both parts: with Babel 2.18 and `NAME_LANGUAGES` 1,362 of 11,332 texts,
    which stand for nearly half of all names. A text that names several things in one language is kept
    once, in the test if one of them is held out. So no text is in both parts, in whatever case.

    **Arguments** Babel's names of the languages.

    **Returns** training and test part, in the order of `names_by_language`, and the texts left out, sorted.

    **Raises** as `names_by_language`.
    """
    names = names_by_language(languages)
    spoken: dict[str, set[str]] = {}
    for name in names:
        spoken.setdefault(name.text.casefold(), set()).add(name.language)
    own = [name for name in names if len(spoken[name.text.casefold()]) == 1]
    test = _each_text_once([name for name in own if zlib.crc32(name.concept.encode()) % 4 == 0], seen=set())
    training = _each_text_once(own, seen={name.text.casefold() for name in test})
    return NameSplits(training, test, sorted(text for text, found in spoken.items() if len(found) > 1))


def number_words(numbers: Sequence[int], language: str = "en") -> list[str]:
    r"""Write whole numbers in words, as num2words has it: 21 is "twenty-one".

    **Arguments** a list of whole numbers, and num2words' name of a language, such as `"en"` or `"fr"`.

    **Returns** the words for each number.

    **Raises** `ValueError` if num2words does not know the language, or has no words for a number as large;
    `TypeError` if a number is no whole number.
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
        return _plain(num2words.num2words(int(number), lang=language))
    except (OverflowError, NotImplementedError, LookupError, ValueError) as error:
        raise ValueError(f"num2words has no words for {number} in {language!r}: {error}.") from error


def _locale(language: str):
    import babel

    try:
        return babel.Locale.parse(language)
    except (babel.UnknownLocaleError, ValueError) as error:
        raise ValueError(
            f"Babel does not know the language {language!r}; expected a name such as 'en', 'de' or 'pt_BR'."
        ) from error


def _checked_languages(languages: Sequence[str]) -> list[str]:
    check_names("languages", languages)
    if not len(languages):
        raise ValueError("languages is empty; expected at least one, such as ['en'].")
    twice = next((name for place, name in enumerate(languages) if name in languages[:place]), None)
    if twice is not None:
        raise ValueError(f"languages names {twice!r} twice; expected each once.")
    return list(languages)


def _formats_in_words(language: str) -> list[str]:
    locale = _locale(language)
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

    return _plain(format_date(date, form, locale=language))


def _days_of(years: Sequence[int]) -> np.ndarray:
    check_list("years", years, "years")
    for year in years:
        if isinstance(year, bool) or not isinstance(year, int | np.integer):
            raise TypeError(f"years holds {year!r}; expected whole numbers.")
        if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
            raise ValueError(f"years holds {year}; expected {datetime.MINYEAR} to {datetime.MAXYEAR}.")
    if len(set(years)) < len(years):
        raise ValueError("years holds one of them twice; expected each once.")
    ends = [
        (datetime.date(year, 1, 1).toordinal(), datetime.date(year, 12, 31).toordinal()) for year in map(int, years)
    ]
    return np.array([day for first, last in ends for day in range(first, last + 1)], np.int64)


def _tables(locale) -> list[tuple[str, Mapping]]:
    forms = ("stand-alone", "format")
    return [
        ("territory", locale.territories),
        ("language", locale.languages),
        *(("month", locale.months[form]["wide"]) for form in forms),
        *(("weekday", locale.days[form]["wide"]) for form in forms),
    ]


def _plain(text: str) -> str:
    """The text in one form of Unicode, all white space as single plain spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _plain_name(found: tuple[str, str]) -> tuple[str, str]:
    return _plain(found[0]), found[1]


def _each_text_once(names: list[LabelledName], seen: set[str]) -> list[LabelledName]:
    kept: dict[str, LabelledName] = {}
    for name in names:
        if name.text.casefold() not in seen:
            kept.setdefault(name.text.casefold(), name)
    return list(kept.values())


def _check_seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed is {seed!r}; expected a whole number, at least 0.")
