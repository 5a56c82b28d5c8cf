"""Translate chapters: collect the messages of each, and build its page in another language beside the English one.

    make german
    python tools/build_translation.py de --collect

For each chapter that has a catalogue, `locale/de/LC_MESSAGES/chapters/NN_stem.po`, the page
`_build/html/de/chapters/NN_stem.html` is written: the frame of the English page, which `make book` has built, around
the translated text. The two lead to each other. What the English has changed since then stands in English.
`--collect` brings the catalogues up to date and builds nothing: new messages are empty, and those that the English no
longer has stand at the end, as comments, each with its translation. `contributing/translating.md` says more.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import yaml
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from bs4 import BeautifulSoup, Tag
from jupyter_book.sphinx import build_sphinx

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build" / "html"
LOCALE = ROOT / "locale"
# What leads from one language to the other, and what is said of gaps.
LANGUAGES = {
    "de": {
        "offer": "Auf Deutsch",
        "back": "In English",
        "gaps": "Diese Übersetzung ist älter als das englische Kapitel: {} seiner Absätze stehen noch auf Englisch.",
    }
}
NUMBERS = {
    "de": {"figure": "Abbildung %s", "table": "Tabelle %s", "code-block": "Listing %s", "section": "Abschnitt %s"},
}
SETTINGS = {"gettext_compact": False, "latex_individualpages": False}


def catalogues(language: str) -> dict[str, Path]:
    """The chapters that have a catalogue, each with it."""
    folder = LOCALE / language / "LC_MESSAGES"
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in sorted(folder.rglob("*.po"))}


def read(file: Path) -> Catalog:
    """A catalogue of messages."""
    with file.open("rb") as opened:
        return read_po(opened)


def run_sphinx(builder: str, target: Path, settings: dict, filenames: list[str] | None = None) -> None:
    """Run a builder of Sphinx as Jupyter Book does."""
    overrides = {**SETTINGS, **settings}
    options = {"path_config": str(ROOT / "_config.yml"), "noconfig": True, "quiet": True}
    doctrees = target.parent / f".doctrees-{target.name}"
    failed = build_sphinx(
        str(ROOT), str(target), builder=builder, doctreedir=str(doctrees), confoverrides=overrides,
        filenames=filenames, **options,
    )  # fmt: skip
    if failed:
        raise RuntimeError(f"Sphinx could not build {target.name}: {failed}")


# --- Messages ---------------------------------------------------------------------------------------------------


@cache
def messages(chapter: str) -> list[str]:
    """What is to be translated of a chapter, in its order; its cells are not run for it."""
    with tempfile.TemporaryDirectory() as folder:
        contents = Path(folder) / "_toc.yml"
        contents.write_text(f"format: jb-book\nroot: {chapter}\n", encoding="utf-8")
        settings = {"external_toc_path": str(contents), "nb_execution_mode": "off"}
        run_sphinx("gettext", Path(folder) / "gettext", settings)
        found = [str(message.id) for message in read(Path(folder) / "gettext" / f"{chapter}.pot") if message.id]
    return list(dict.fromkeys([*found, *titles_and_captions(chapter)]))


def titles_and_captions(chapter: str) -> Iterator[str]:
    """The titles of exercises, and what cells say of the figures that they draw: captions and alternative texts."""
    text = (ROOT / f"{chapter}.md").read_text("utf-8")
    yield from re.findall(r"^`{3,}\{exercise(?:-start)?\} (.+)$", text, re.M)
    for header in re.findall(r"^```\{code-cell\}[^\n]*\n---\n(.*?)^---$", text, re.M | re.S):
        told = yaml.safe_load(header).get("mystnb", {})
        for words in (told.get("figure", {}).get("caption"), told.get("image", {}).get("alt")):
            if words:
                yield " ".join(words.split())


def is_prose(message: str) -> bool:
    """Whether there are words to translate outside formulas and code, or words within a formula."""
    bare = re.sub(r"\$[^$]*\$|`[^`]*`", "", message)
    formula = re.search(r"\\[a-z]+", bare)
    words = re.findall(r"\\text\{([a-z ]+)\}", bare) if formula else re.findall(r"[A-Za-z]{2,}", bare)
    return bool(words) and not re.fullmatch(r"[\w/]+\.py, line \d+", message)


def collect(language: str) -> None:
    """Bring the catalogues up to date."""
    for chapter, file in catalogues(language).items():
        catalogue, template = read(file), Catalog(project="Plainformer", fuzzy=False)
        for message in filter(is_prose, messages(chapter)):
            template.add(message)
        catalogue.update(template, no_fuzzy_matching=True, update_creation_date=False)
        save(catalogue, file)


def save(catalogue: Catalog, file: Path) -> None:
    """Write a catalogue, one line a message, so that a change of one is a change of one."""
    with file.open("wb") as opened:
        write_po(opened, catalogue, width=0, omit_header=False)


def untranslated(language: str, chapter: str) -> list[str]:
    """The messages of a chapter that its catalogue lacks."""
    known = {message.id for message in read(catalogues(language)[chapter]) if message.string}
    return [message for message in messages(chapter) if is_prose(message) and message not in known]


# --- The page ---------------------------------------------------------------------------------------------------


def build(language: str) -> None:
    """Build the pages of a language beside the English ones."""
    chapters, target = catalogues(language), ROOT / "_build" / language
    for chapter, file in chapters.items():
        compiled = ROOT / "build" / "locale" / language / "LC_MESSAGES" / f"{chapter}.mo"
        compiled.parent.mkdir(parents=True, exist_ok=True)
        with compiled.open("wb") as opened:
            write_mo(opened, read(file))
    settings = {"language": language, "locale_dirs": ["build/locale"], "numfig_format": NUMBERS[language]}
    run_sphinx("html", target, settings, [str(ROOT / f"{chapter}.md") for chapter in chapters])
    for chapter in chapters:
        lacking = len(untranslated(language, chapter))
        place(language, chapter, target / f"{chapter}.html", lacking)
        print(f"_build/html/{language}/{chapter}.html: {lacking} messages stand in English")


def place(language: str, chapter: str, translated: Path, lacking: int) -> None:
    """Put the translated text into the frame of the English page, and let the two lead to each other."""
    words, file, here = LANGUAGES[language], SITE / f"{chapter}.html", SITE / language / f"{chapter}.html"
    english = file.read_text("utf-8")
    frame, theirs = BeautifulSoup(english, "html.parser"), BeautifulSoup(translated.read_text("utf-8"), "html.parser")
    site = str(part_of(frame, "link[rel=canonical]")["href"]).removesuffix(f"{chapter}.html")
    for part in ("article.bd-article", "#pst-page-toc-nav", "title"):
        part_of(frame, part).replace_with(part_of(theirs, part))
    move(frame, chapter, f"{language}/{chapter}.html")
    part_of(frame, "html")["lang"] = language
    part_of(frame, "link[rel=canonical]")["href"] = f"{site}{language}/{chapter}.html"

    up = "../" * chapter.count("/")
    file.write_text(offer(english, language, site, up, f"{language}/{chapter}.html", words["offer"]), encoding="utf-8")
    gaps = f" {words['gaps'].format(lacking)}" if lacking else ""
    here.parent.mkdir(parents=True, exist_ok=True)
    here.write_text(offer(str(frame), "en", site, f"../{up}", f"{chapter}.html", words["back"], gaps), encoding="utf-8")


def offer(page: str, language: str, site: str, up: str, target: str, words: str, more: str = "") -> str:
    """Return a page with a line below its title that leads to the other language, and the same for search engines."""
    page = re.sub(r'<link rel="alternate" hreflang=[^>]*>|<p class="translation">.*?</p>', "", page, flags=re.S)
    known = f'<link rel="alternate" hreflang="{language}" href="{site}{target}">'
    line = (
        f'<p class="translation"><a href="{up}{target}" hreflang="{language}" lang="{language}">{words}</a>{more}</p>'
    )
    frame, article, text = page.partition("<article")  # the theme has a title of its own, for print, before it
    return frame.replace("</head>", f"{known}</head>", 1) + article + text.replace("</h1>", f"</h1>{line}", 1)


def part_of(soup: BeautifulSoup, selector: str) -> Tag:
    """The one part of a page that must be there."""
    found = soup.select_one(selector)
    if found is None:
        raise LookupError(f"a page has no {selector}")
    return found


def move(soup: BeautifulSoup, chapter: str, here: str) -> None:
    """Let the links of a page lead where they led, now that it lies a folder deeper."""
    up = "../" * here.count("/")
    for part in soup.select("[href], [src]"):
        for key in {"href", "src"} & part.attrs.keys():
            address = urlsplit(str(part[key]))
            if not address.scheme and not address.netloc and address.path:
                part[key] = up + urljoin(f"/{chapter}.html", str(part[key])).removeprefix("/")
    part_of(soup, "html")["data-content_root"] = up


def main() -> int:
    """Read the command line, and collect or build."""
    match sys.argv[1:]:
        case [language, *rest] if language in LANGUAGES and rest in ([], ["--collect"]):
            if rest:
                collect(language)
            elif not (SITE / "index.html").is_file():
                print(f"there is no site in {SITE}: run `make book` first", file=sys.stderr)
                return 1
            else:
                build(language)
            return 0
    print(f"expected a language of {', '.join(LANGUAGES)}, and perhaps --collect", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
