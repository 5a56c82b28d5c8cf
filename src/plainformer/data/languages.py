"""Languages as Babel names and spells them."""

import unicodedata
from collections.abc import Sequence

from plainformer.checks import check_names


def locales(languages: Sequence[str]) -> dict:
    """Babel's `Locale` of each language, by name; `ValueError` if one is unknown or occurs twice, or there is none."""
    check_names("languages", languages)
    if not len(languages):
        raise ValueError("languages is empty; expected at least one, such as ['en'].")
    twice = next((name for place, name in enumerate(languages) if name in languages[:place]), None)
    if twice is not None:
        raise ValueError(f"languages names {twice!r} twice; expected each once.")
    return {language: _locale(language) for language in languages}


def plain(text: str) -> str:
    """The text in one form of Unicode, all white space as single plain spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _locale(language: str):
    import babel

    try:
        return babel.Locale.parse(language)
    except (babel.UnknownLocaleError, ValueError) as error:
        raise ValueError(
            f"Babel does not know the language {language!r}; expected a name such as 'en', 'de' or 'pt_BR'."
        ) from error
