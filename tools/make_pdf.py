"""Print the whole book into one PDF, `_build/plainformer.pdf`, from the pages of the built site.

    make pdf

The pages become one, in which every link between them leads to a place in it; figures, equations and exercises keep
their numbers. Live figures are their static frames, solutions are open, and code that the site folds away is left out.
It is printed twice: only when it has been printed is it known on which page each section of the contents begins.
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import yaml
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import sync_playwright
from pypdf import PdfReader

ROOT = Path(__file__).parents[1]
SITE = Path(os.environ.get("SITE", ROOT / "_build" / "html"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PDF = ROOT / "_build" / "plainformer.pdf"
# What a page has for a reader at a screen.
UNPRINTED = (
    ".chapter-map, .headerlink, .copybtn, .start, details.hide, script, noscript, .live-figure-note, .toctree-wrapper"
)
STYLE = """
.bd-article, .book-contents { break-before: page; }
.bd-article:first-child { break-before: auto; }
.book-contents ul { padding: 0; list-style: none; }
.book-contents > ul > li { margin-top: 0.5rem; font-weight: 600; }
.book-contents ul ul { columns: 2; column-gap: 1.5rem; margin-left: 1.2rem; font-weight: 400; font-size: 0.9rem; }
.book-contents a { display: flex; gap: 0.5rem; justify-content: space-between; color: inherit; text-decoration: none; }
.book-contents a > span { flex: none; width: 2rem; text-align: right; font-variant-numeric: tabular-nums; }
.book-contents li li { break-inside: avoid; }
"""
FOOT = (
    '<div style="width: 100%; text-align: center; font: 8px sans-serif; color: #4c5560">'
    '<span class="pageNumber"></span></div>'
)
MINUTES = 15


def pages() -> list[str]:
    """The pages in the order of the table of contents."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


def place(page: str, anchor: str = "") -> str:
    """The id that an anchor of a page has in the whole."""
    return re.sub(r"[^\w-]", "-", page) + (f"--{anchor}" if anchor else "")


def move_links(article: Tag, page: str, included: list[str], site: str) -> None:
    """Let ids name their page, links lead to places in the whole or to the site, and pictures start at the root."""
    for part in article.select("[id]"):
        part["id"] = place(page, str(part["id"]))
    for link in article.select("a[href]"):
        address, anchor = urldefrag(urljoin(f"/{page}.html", str(link["href"])))
        target = address.removeprefix("/").removesuffix(".html")
        if target in included:
            link["href"] = "#" + place(target, unquote(anchor).partition("?")[0])
        elif address.startswith("/"):
            link["href"] = urljoin(site, str(link["href"]))
    for picture in article.select("img[src]"):
        picture["src"] = urljoin(f"/{page}.html", str(picture["src"])).removeprefix("/")
        picture["loading"] = "eager"


def article(page: str, included: list[str]) -> Tag:
    """What is printed of a page."""
    whole = BeautifulSoup((SITE / f"{page}.html").read_text("utf-8"), "html.parser")
    found = whole.select_one("article.bd-article")
    if found is None:
        raise LookupError(f"{page}.html has no article")
    for part in found.select(UNPRINTED):
        part.decompose()
    for fold in found.select("details, details > summary"):  # which would not break between pages
        fold.name = "div"
    site = whole.select_one("link[rel=canonical]")
    move_links(found, page, included, str(site["href"]) if site else "")
    found["id"] = place(page)
    return found


def entry(anchor: str, title: str) -> str:
    """A link to a place, with room for the number of its page."""
    return f'<a href="#{anchor}">{title}<span data-place="{anchor}"></span></a>'


def contents(articles: dict[str, Tag]) -> str:
    """The list of chapters with their sections."""
    lines = []
    for page, found in articles.items():
        title = found.select_one("h1")
        lines.append(f"<li>{entry(place(page), title.get_text() if title else page)}<ul>")
        for section in found.select("section > section:has(> h2)"):
            if page.startswith("chapters/") and (heading := section.select_one("h2")):
                # A section may begin with a margin at the foot of the page before its heading.
                heading["id"] = anchor = f"{section['id']}--heading"
                lines.append(f"<li>{entry(anchor, heading.get_text())}</li>")
        lines.append("</ul></li>")
    return '<nav class="book-contents"><h1>Contents</h1><ul>' + "".join(lines) + "</ul></nav>"


def assemble(included: list[str]) -> str:
    """The whole book as one page, with the styles of the site."""
    head = BeautifulSoup((SITE / "chapters/self_attention.html").read_text("utf-8"), "html.parser").head
    if head is None:
        raise LookupError("a page has no head")
    kept = list(head.select("link[rel=stylesheet]"))
    for part in kept:
        part["href"] = urljoin("/chapters/x.html", str(part["href"])).removeprefix("/")
    articles = {page: article(page, included) for page in included}
    first, *rest = articles.values()
    body = "\n".join([str(first), contents(dict(list(articles.items())[1:])), *map(str, rest)])
    return f"""<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Plainformer</title>
{"".join(map(str, kept))}<style>{STYLE}</style></head><body><main class="bd-main"><div class="bd-content">
<div class="bd-article-container">{body}</div></div></main></body></html>"""


def lost_links(whole: BeautifulSoup) -> set[str]:
    """Links of the whole that lead to no place in it."""
    places = {str(part["id"]) for part in whole.select("[id]")}
    return {str(link["href"]) for link in whole.select('a[href^="#"]')} - {f"#{name}" for name in places} - {"#"}


def print_page(source: Path, target: Path) -> None:
    """Have Chromium print a page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(60_000 * MINUTES)
        page.goto(source.as_uri())
        page.evaluate("document.fonts.ready.then(() => true)")
        margins = {"top": "18mm", "bottom": "20mm", "left": "19mm", "right": "19mm"}
        look = {"format": "A4", "margin": margins, "print_background": True, "outline": True, "tagged": True}
        page.pdf(path=target, display_header_footer=True, header_template="<i></i>", footer_template=FOOT, **look)
        browser.close()


def with_page_numbers(text: str, pdf: Path) -> str:
    """The whole with the numbers of the pages in its contents, as they were when it was printed without."""
    reader = PdfReader(pdf)
    places = reader.named_destinations

    def number(room: re.Match) -> str:
        page = reader.get_destination_page_number(places[f"/{room[1]}"])
        if page is None:
            raise LookupError(f"{pdf.name} has no page for {room[1]}")
        return f"<span>{page + 1}</span>"

    return re.sub(r'<span data-place="([^"]+)"></span>', number, text)


def print_book(included: list[str], target: Path) -> None:
    """Print these pages as one book, and again with the numbers of its pages in the contents."""
    text = assemble(included)
    if lost := lost_links(BeautifulSoup(text, "lxml")):
        raise LookupError(f"links that lead nowhere: {sorted(lost)[:10]}")
    whole = SITE / f"whole-book-{os.getpid()}.html"  # two may print at once
    try:
        whole.write_text(text, encoding="utf-8")
        print_page(whole, target)
        whole.write_text(with_page_numbers(text, target), encoding="utf-8")
        print_page(whole, target)
    finally:
        whole.unlink(missing_ok=True)


def main() -> int:
    """Print the whole book."""
    if not (SITE / "index.html").is_file():
        print(f"there is no site in {SITE}: run `make book` first", file=sys.stderr)
        return 1
    print_book(pages(), PDF)
    print(f"{PDF.relative_to(ROOT)}: {PDF.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
