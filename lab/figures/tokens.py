"""Write the vocabularies of the live figure `bpe`, made of the Python reference, and a list of names in many languages.

`make models` runs it. The reference differs a little between Python versions, so the file says which one it was.
"""

import json
import platform
from collections import Counter
from pathlib import Path

import babel
from babel.lists import format_list

import plainformer as pf
from lab.records import ROOT
from plainformer.tokens.merges import pre_tokenise

NUMBERS = ROOT / "widgets" / "vocabularies.json"
VOCAB_SIZE = 4096
NUM_WORDS = 999  # with one for all others a thousand, as many as the chapter's tokens
TERRITORIES = ("DE", "JP", "EG", "BR", "IN")
LANGUAGES = ("en", "de", "vi", "ru", "ar", "hi", "th", "zh")


def vocabularies(text: str) -> dict:
    """The characters of a text, its most frequent words, each with the space before it, and its merges as pairs of ids.

    A word is a piece of `pre_tokenise`: numbers and signs are among them. The n-th merge makes the id 256 + n, from 0;
    a smaller vocabulary has the first of the merges.
    """
    encoder = pf.BytePairEncoder.train(text, VOCAB_SIZE)
    return {
        "characters": "".join(sorted(set(text))),
        "words": [word for word, _ in Counter(pre_tokenise(text)).most_common(NUM_WORDS)],
        "merges": [[encoder.vocabulary[part] for part in pair] for pair in encoder.merges],
    }


def lists_of_countries() -> list[dict]:
    """Five countries, as each language lists them: the same words everywhere, by Unicode's CLDR."""

    def listed(code: str) -> dict:
        locale = babel.Locale.parse(code)
        text = format_list([locale.territories[name] for name in TERRITORIES], locale=locale)
        return {"code": code, "name": locale.english_name, "text": text}

    return [listed(code) for code in LANGUAGES]


def write(path: Path = NUMBERS) -> None:
    """Write the vocabularies of this Python's reference, and the lists of this Babel."""
    made = {"python": platform.python_version(), "babel": babel.__version__}
    made |= vocabularies(pf.data.python_reference()) | {"languages": lists_of_countries()}
    path.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
