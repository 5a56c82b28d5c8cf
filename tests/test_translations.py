"""Each catalogue says what its chapter says: whole, nothing lost, and what has become stale is named."""

import re
import warnings
from collections import Counter

import pytest
from babel.messages.catalog import Catalog

from tools import build_translation as translation

CHAPTERS = [(language, chapter) for language in translation.LANGUAGES for chapter in translation.catalogues(language)]
each_chapter = pytest.mark.parametrize(("language", "chapter"), CHAPTERS)
# More of a chapter in English is no translation of it.
STALE = 1 / 3


def kept(message: str) -> Counter:
    """What a translation has as its message has it: roles, code, formulas, numbers.

    Of a link in words, ``{ref}`words <label>` ``, it is the label that stays.
    """
    message = re.sub(r"(\{(?:set-figure|ref|numref)\}`)[^`<]*<", r"\1<", message)
    message = re.sub(r"\\text\{[^}]*\}", "", message)
    message = re.sub(r"(?<=\d),(?=\d{3}\b)", "", message)
    roles = re.findall(r"\{[\w:]+\}`[^`]*`|`[^`]*`", message)
    formulas = re.findall(r"\$[^$]+\$|\\[a-z]+", message)
    return Counter([*roles, *formulas, *re.findall(r"\d+(?:\.\d+)?", message)])


def catalogue(language: str, chapter: str) -> Catalog:
    return translation.read(translation.catalogues(language)[chapter])


@each_chapter
def test_no_message_is_fuzzy_or_loses_anything(language, chapter):
    for message in catalogue(language, chapter):
        if message.id and message.string:
            lost, gained = kept(message.id) - kept(message.string), kept(message.string) - kept(message.id)
            assert not lost, f"the translation of {message.id[:80]!r} lacks {dict(lost)}"
            assert not gained, f"the translation of {message.id[:80]!r} adds {dict(gained)}"
            assert not message.fuzzy, f"{message.id[:80]!r} is marked as fuzzy"


@each_chapter
def test_chapter_is_translated(language, chapter):
    lacking = translation.untranslated(language, chapter)
    if lacking:
        told = "\n".join(f"  {message[:100]!r}" for message in lacking)
        # Who edits the English is told, and not stopped.
        warnings.warn(f"{language} of {chapter}: {len(lacking)} messages are new\n{told}", FutureWarning, stacklevel=1)
    whole = [message for message in translation.messages(chapter) if translation.is_prose(message)]
    assert len(lacking) <= STALE * len(whole), f"of {len(whole)} messages {len(lacking)} are not translated"


# Sphinx's sitemap forks a process that keeps a list; JAX, which this process has imported, is not used there.
pytestmark = pytest.mark.filterwarnings(
    "default:.*messages are new:FutureWarning", r"ignore:os\.fork\(\) was called:RuntimeWarning"
)


def test_what_a_translation_loses_is_found():
    english = "See {ref}`sec-a`: $x_n$ is `x`, and 2,000 of 0.5 %."
    assert kept(english) == kept("In {ref}`sec-a` ist $x_n$ `x`, und 2000 von 0.5 %.")
    for wrong in (
        "{ref}`sec-b`: $x_n$ `x` 2000 0.5",
        "{ref}`sec-a`: $x_m$ `x` 2000 0.5",
        "{ref}`sec-a`: $x_n$ `x` 2000 5",
    ):
        assert kept(english) != kept(wrong)


@each_chapter
def test_stale_message_is_named_and_kept_as_a_comment(language, chapter, tmp_path, monkeypatch):
    english = translation.messages(chapter)
    changed = next(message for message in english if len(message) > 200)
    monkeypatch.setattr(translation, "messages", lambda _: ["A new one.", *(m for m in english if m != changed)])
    assert translation.untranslated(language, chapter)[0] == "A new one."
    file = tmp_path / "x.po"
    file.write_bytes(translation.catalogues(language)[chapter].read_bytes())
    monkeypatch.setattr(translation, "catalogues", lambda _: {chapter: file})
    translation.collect(language)
    found = translation.read(file)
    assert found["A new one."].string == ""
    assert changed in found.obsolete
    assert changed not in found


PAGE = """<!DOCTYPE html><html lang="en" data-content_root="../"><head><title>{title}</title>
<link rel="canonical" href="https://book.example/chapters/a.html"></head><body><h1>Print</h1>
<nav><a href="../index.html">Up</a>
<a href="b.html">Next</a><a href="#">Here</a></nav><article class="bd-article"><h1>{title}</h1>
<img src="../_images/x.svg"><a href="b.html#there">b</a><a href="https://other.example/">o</a></article>
<nav id="pst-page-toc-nav"><a href="#part">{title}</a></nav></body></html>"""


def test_page_is_the_english_frame_around_the_translated_text(tmp_path, monkeypatch):
    monkeypatch.setattr(translation, "SITE", tmp_path)
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/a.html").write_text(PAGE.format(title="Attention, please"), encoding="utf-8")
    (tmp_path / "built.html").write_text(PAGE.format(title="Achtung"), encoding="utf-8")
    for lacking in (2, 0):  # twice, as after a change
        translation.place("de", "chapters/a", tmp_path / "built.html", lacking)
        english, german = (tmp_path / name for name in ("chapters/a.html", "de/chapters/a.html"))
        assert ("2 seiner Absätze" in german.read_text("utf-8")) == bool(lacking)
    english, german = english.read_text("utf-8"), german.read_text("utf-8")
    assert english.count('<a href="../de/chapters/a.html" hreflang="de" lang="de">Auf Deutsch</a>') == 1
    assert english.count('hreflang="de" href="https://book.example/de/chapters/a.html"') == 1
    assert german.count('<a href="../../chapters/a.html" hreflang="en" lang="en">In English</a>') == 1
    assert '<html data-content_root="../../" lang="de">' in german or '<html lang="de"' in german
    assert "Attention" not in german
    assert "Achtung</h1><p class=" in german
    assert german.count("Achtung") == 3
    links = re.findall(r'(?<!rel="canonical" )(?:href|src)="([^"]+)"', german)
    ours = ["../../index.html", "../../chapters/b.html", "../../_images/x.svg", "../../chapters/b.html#there", "#part"]
    assert {*ours, "#", "https://other.example/"} <= {*links}
    assert 'rel="canonical"' in german
    assert "https://book.example/de/chapters/a.html" in german
