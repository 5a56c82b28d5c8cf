"""Names of territories, languages, months and days in many languages, from what Babel brings with it."""

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from plainformer.data.languages import locales, plain

NAME_LANGUAGES = (
    *("cs", "cy", "da", "de", "en", "es", "et", "fi", "fr", "ga"),
    *("hr", "hu", "it", "lt", "nl", "pl", "pt", "ro", "sv", "tr"),
)


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


def names_by_language(languages: Sequence[str] = NAME_LANGUAGES) -> list[LabelledName]:
    """Return the names that CLDR has for territories, languages, months and days of the week, language by language.

    A concept ends in CLDR's code, or in a number: "month 1" is January, "weekday 0" Monday. A month may have two
    forms, by itself and within a date, such as Polish "październik" and "października". White space and versions are
    as in `date_pairs`. A text occurs at most once for each thing, but may occur for several and in several languages.

    Raises:
        ValueError: if Babel does not know a language or one occurs twice.
    """
    names = []
    for language, locale in locales(languages).items():
        found = [
            (plain(text), f"{kind} {code}")
            for kind, table in _tables(locale)
            for code, text in sorted(table.items(), key=lambda item: str(item[0]))
            if code not in ("XA", "XB", "ZZ") and str(code) != text  # not places; not a name
        ]
        names += [LabelledName(text, language, concept) for text, concept in dict.fromkeys(found)]
    return names


def name_splits(languages: Sequence[str] = NAME_LANGUAGES) -> NameSplits:
    """Return names to learn languages from, and names of other things to test on.

    Whole things are held out, about a quarter of them, chosen by a checksum of the concept: all names that languages
    have for Portugal are on one side. What is not held out are parts of words, so "Französisch" may be in training
    and "Frankreich" in the test. A text that occurs in more than one of the languages, whether in capitals or not,
    has no one right label, and is left out of both parts: with Babel 2.18 and `NAME_LANGUAGES` 1,362 of 11,332 texts,
    which stand for nearly half of all names. A text that names several things in one language is kept
    once, in the test if one of them is held out. So no text is in both parts, in whatever case.
    """
    names = names_by_language(languages)
    spoken: dict[str, set[str]] = {}
    for name in names:
        spoken.setdefault(name.text.casefold(), set()).add(name.language)
    own = [name for name in names if len(spoken[name.text.casefold()]) == 1]
    test = _each_text_once([name for name in own if zlib.crc32(name.concept.encode()) % 4 == 0], seen=set())
    training = _each_text_once(own, seen={name.text.casefold() for name in test})
    return NameSplits(training, test, sorted(text for text, found in spoken.items() if len(found) > 1))


def _tables(locale) -> list[tuple[str, Mapping]]:
    forms = ("stand-alone", "format")
    return [
        ("territory", locale.territories),
        ("language", locale.languages),
        *(("month", locale.months[form]["wide"]) for form in forms),
        *(("weekday", locale.days[form]["wide"]) for form in forms),
    ]


def _each_text_once(names: list[LabelledName], seen: set[str]) -> list[LabelledName]:
    kept: dict[str, LabelledName] = {}
    for name in names:
        if name.text.casefold() not in seen:
            kept.setdefault(name.text.casefold(), name)
    return list(kept.values())
