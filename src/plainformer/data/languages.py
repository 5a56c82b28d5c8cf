"""Languages as Babel names and spells them."""

import unicodedata
from collections.abc import Sequence

from plainformer.data.lists import check_names, check_once


def locales(languages: Sequence[str]) -> dict:
    """Babel's `Locale` of each language, by name; `ValueError` if one is unknown or occurs twice, or there is none."""
    import babel

    check_names("languages", languages)
    check_once("languages", languages)
    if not len(languages):
        raise ValueError("languages is empty; expected at least one, such as ['en'].")
    found = {}
    for language in languages:
        try:
            found[language] = babel.Locale.parse(language)
        except (babel.UnknownLocaleError, ValueError) as error:
            what = f"Babel does not know the language {language!r}"
            raise ValueError(f"{what}; expected a name such as 'en', 'de' or 'pt_BR'.") from error
    return found


def plain(text: str) -> str:
    """The text in one form of Unicode, all white space as single plain spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())
