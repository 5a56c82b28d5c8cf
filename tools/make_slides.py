"""Make slides of each chapter from its page on the built site, `_build/slides/stem.html`.

    make slides             # every chapter
    make slides ONLY=depth  # those whose names contain this

A deck is one page: a slide fills the window, the space bar or the wheel goes on, and the browser prints a slide a page.
It has the opening question and its figure, the goals, the equations and figures of each section, and the exercises. A
live figure is its picture, which leads to the place on the site where it moves.
"""

import os
import sys
from html import escape
from pathlib import Path
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "_ext"))

from book_meaning.order import lessons  # noqa: E402

BUILD = ROOT / "_build"
SITE = Path(os.environ.get("SITE", BUILD / "html"))
EQUATIONS_A_SLIDE = 2
LEFT_OUT = ".headerlink, .exercise-row, .equation-row, .copybtn, script, noscript, .live-figure-note"
STYLE = """
html[lang] { scroll-snap-type: y mandatory; font-size: 22px; overflow-y: scroll; scroll-padding: 0; }
body { margin: 0; }
.slide { box-sizing: border-box; min-height: 100vh; padding: 5vh 7vw; scroll-snap-align: start; display: flex;
  flex-direction: column; justify-content: center; }
.slide > h1, .slide > h2 { margin: 0 0 3vh; }
.slide > h2 { font-size: 1.5rem; }
.slide .slide-body { width: 100%; }
.slide figure { margin: 0 auto; max-width: 100%; text-align: center; }
.slide figure svg, .slide figure img { display: block; width: auto; height: auto; max-width: 100%; max-height: 58vh;
  margin: 0 auto; }
.slide figure > svg, .slide .drawing svg { height: 58vh; }
.slide figure:has(img) { display: flex; gap: 3vw; align-items: center; justify-content: center; text-align: left; }
.slide figure:has(img) > :not(figcaption) { flex: 0 1 auto; }
.slide figure:has(img) img { max-height: 76vh; max-width: 58vw; }
.slide figure:has(img) figcaption { flex: 0 1 24vw; min-width: 22vw; margin: 0; }
.slide figcaption { max-width: 50rem; margin: 2vh auto 0; font-size: 0.85rem; }
.slide div.math { margin: 3vh 0; font-size: 1.2rem; }
.slide .admonition { margin: 0; font-size: 0.9rem; }
@page { size: 1280px 720px; margin: 0; }
@media print { .slide { height: 720px; min-height: 0; break-after: page; overflow: hidden; } }
"""


def slide(title: str, body: list[Tag], level: int = 2) -> str:
    """One slide: its title, with markup, and what stands below it."""
    content = "".join(map(str, body))
    return f'<section class="slide"><h{level}>{title}</h{level}><div class="slide-body">{content}</div></section>'


def heading(part: Tag) -> str:
    """The title of a chapter or section, with its formulas."""
    found = part.find(["h1", "h2"], recursive=False)
    if not isinstance(found, Tag):
        raise LookupError(f"the part {part.get('id')!r} has no heading")
    return found.decode_contents().strip()


def prepare(article: Tag, page: str) -> None:
    """Take away what serves a reader at the page, and let addresses lead from the slides to the site."""
    for part in article.select(LEFT_OUT):
        part.decompose()
    for name, kinds in (("href", "a[href]"), ("src", "img[src]")):
        for part in article.select(kinds):
            address = str(part[name])
            if not address.startswith(("http", "data:", "mailto:")):
                part[name] = "../html" + urljoin(f"/{page}.html", address)
    for picture in article.select("img"):
        picture["loading"] = "eager"
    for figure in article.select("figure:has(.live-figure)"):
        link_to_live(figure, page)


def link_to_live(figure: Tag, page: str) -> None:
    """Put the picture of a live figure in place of it, as a link to where it moves."""
    picture, live = figure.select_one("img"), figure.select_one(".live-figure")
    if picture is None or live is None:
        raise LookupError(f"the live figure {figure.get('id')!r} has no picture")
    markup = f'<a class="live" href="../html/{page}.html#{figure["id"]}" title="Move this figure">{picture}</a>'
    live.replace_with(BeautifulSoup(markup, "html.parser"))


def section_slides(section: Tag) -> list[str]:
    """The equations of a section, or its first words if it has none, and a slide for each of its figures."""
    title = heading(section)
    equations = section.select('div.math[id^="equation-"]')
    groups = [equations[at : at + EQUATIONS_A_SLIDE] for at in range(0, len(equations), EQUATIONS_A_SLIDE)]
    return [
        *(slide(title, group) for group in groups or [section.find_all("p", recursive=False, limit=1)]),
        *(slide(title, [figure]) for figure in section.select("figure")),
    ]


def exercise_slides(section: Tag) -> list[str]:
    """A slide for each exercise, without its solution."""
    return [slide(heading(section), [exercise]) for exercise in section.select("div.exercise")]


def deck(page: str) -> str:
    """The slides of a chapter as one page.

    Args:
        page: the chapter as the table of contents names it, such as `chapters/self_attention`.

    Raises:
        LookupError: if the page is no chapter of the built site.
    """
    whole = BeautifulSoup((SITE / f"{page}.html").read_text("utf-8"), "html.parser")
    chapter = whole.select_one("article.bd-article > section")
    if chapter is None:
        raise LookupError(f"{page}.html has no chapter")
    prepare(chapter, page)
    slides = [slide(heading(chapter), chapter.find_all("p", recursive=False, limit=1), level=1)]
    slides += [slide(heading(chapter), [figure]) for figure in chapter.find_all("figure", recursive=False)]
    if goals := chapter.select_one("details .sd-summary-content"):
        slides.append(slide("What you will be able to do", [goals]))
    sections = [part for part in chapter.find_all("section", recursive=False) if part.find("h2", recursive=False)]
    exercises = [part for part in sections if part.select_one("div.exercise")]
    for part in sections:
        if part not in exercises and part["id"] != "summary":
            slides += section_slides(part)
    for part in exercises:
        slides += exercise_slides(part)
    styles = "".join(
        f'<link rel="stylesheet" href="../html{urljoin(f"/{page}.html", str(link["href"]))}">'
        for link in whole.select("head link[rel=stylesheet]")
    )
    title = escape(whole.title.get_text(strip=True) if whole.title else page)
    return (
        f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{title}</title>'
        f"{styles}<style>{STYLE}</style></head><body><main>{''.join(slides)}</main></body></html>"
    )


def main(only: str = "") -> int:
    """Make the decks of the chapters whose names contain a word."""
    pages = [stem for page in lessons(ROOT) if only in (stem := page.removeprefix("chapters/"))]
    if missing := [name for name in pages if not (SITE / "chapters" / f"{name}.html").is_file()]:
        print(f"{SITE} has no page of {', '.join(missing)}: run `make book` first", file=sys.stderr)
        return 1
    if not pages:
        print(f"no chapter's name contains {only!r}", file=sys.stderr)
        return 1
    folder = BUILD / "slides"
    folder.mkdir(parents=True, exist_ok=True)
    for name in pages:
        text = deck(f"chapters/{name}")
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
        count = text.count('<section class="slide">')
        print(f"_build/slides/{name}.html: {count} slides")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
