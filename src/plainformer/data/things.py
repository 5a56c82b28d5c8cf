"""One thing and its names in many languages, from what Babel brings with it."""

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plainformer.data.languages import locales, plain
from plainformer.data.names import NAME_LANGUAGES, LabelledName, names_by_language


class ThingSplits(NamedTuple):
    """Things to learn from and things held out: for each concept, such as "territory FR", its different names."""

    training: dict[str, list[str]]
    test: dict[str, list[str]]


def thing_splits(languages: Sequence[str] = NAME_LANGUAGES) -> ThingSplits:
    """Return what things are called in many languages: "Norwegen", "Norvège", "Norja" and so on in one list.

    Held out are the things that `name_splits` holds out: territories, languages, months and days of the week. To learn
    from there are the others, and currencies, scripts, units, and time zones with their cities, less every name that
    contains one of those held out, of four letters or more, in whatever case. A name that several languages share
    stands once in the list of its thing, and things with a single name are left out.

    Raises:
        ValueError: if Babel does not know a language or one occurs twice.
    """
    names = names_by_language(languages)
    test = [name for name in names if zlib.crc32(name.concept.encode()) % 4 == 0]
    held_out = {name.text.casefold() for name in test if len(name.text) >= 4}
    within = re.compile("|".join(map(re.escape, sorted(held_out))))
    learnt = [name for name in names if zlib.crc32(name.concept.encode()) % 4] + list(_more_names(languages))
    training = [name for name in learnt if not (held_out and within.search(name.text.casefold()))]
    return ThingSplits(_by_concept(training), _by_concept(test))


def _more_names(languages: Sequence[str]) -> Iterator[LabelledName]:
    for language, locale in locales(languages).items():
        tables = {
            "currency": locale.currencies,
            "script": locale.scripts,
            "unit": {code: names.get("long") for code, names in locale.unit_display_names.items()},
            "city": {code: names.get("city") for code, names in locale.time_zones.items()},
            "zone": {code: names.get("long", {}).get("standard") for code, names in locale.meta_zones.items()},
        }
        for kind, table in tables.items():
            for code, text in sorted(table.items()):
                if text and text != code:
                    yield LabelledName(plain(text), language, f"{kind} {code}")


def _by_concept(names: list[LabelledName]) -> dict[str, list[str]]:
    found: dict[str, dict[str, str]] = {}
    for name in names:
        found.setdefault(name.concept, {}).setdefault(name.text.casefold(), name.text)
    return {concept: list(texts.values()) for concept, texts in found.items() if len(texts) > 1}
