"""The book as one PDF: its pages become one, in which every link leads to a place, and Chromium prints it."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

SCRIPT = Path(__file__).parents[2] / "tools" / "make_pdf.py"
SPEC = importlib.util.spec_from_file_location("make_pdf", SCRIPT)
make_pdf = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_pdf)


@pytest.fixture(scope="module")
def whole() -> BeautifulSoup:
    return BeautifulSoup(make_pdf.assemble(make_pdf.pages()), "lxml")


def test_every_link_leads_to_a_place(whole):
    assert make_pdf.lost_links(whole) == set()


def test_pictures_are_there_and_solutions_are_open(whole):
    missing = [img["src"] for img in whole.select("img") if not (make_pdf.SITE / img["src"]).is_file()]
    assert missing == []
    # A live figure is its static frame.
    assert len(whole.select(".live-figure img")) == len(whole.select(".live-figure")) > 10
    assert not whole.select("details, .chapter-map, [type=module]")


def test_numbers_stay(whole):
    """Figures and equations keep the numbers that they have on their pages."""
    page = BeautifulSoup((make_pdf.SITE / "chapters/self_attention.html").read_text("utf-8"), "lxml")
    texts = [each.get_text() for each in (page, whole)]
    assert all(number in text for text in texts for number in ("Figure 2.1 ", "(2.11)", "Exercise 2.1"))


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> PdfReader:
    """One short chapter as a book."""
    target = tmp_path_factory.mktemp("pdf") / "one.pdf"
    # In a process of its own: the other tests of this one have a browser open.
    included = ["index", "chapters/notation"]
    code = f"import make_pdf, pathlib; make_pdf.print_book({included}, pathlib.Path({str(target)!r}))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=SCRIPT.parent)
    return PdfReader(target)


def test_chapter_prints_with_links(printed):
    """Several pages, an outline, and links within the file."""
    assert len(printed.pages) > 5
    assert printed.outline
    notes = [note.get_object() for page in printed.pages for note in page.get("/Annots", [])]
    assert sum(note["/Subtype"] == "/Link" for note in notes) > 20
    assert printed.named_destinations


def test_contents_say_on_which_page_a_section_begins(printed):
    text = [" ".join(page.extract_text().split()) for page in printed.pages]
    listed = next(page for page in text if page.startswith("Contents"))
    headings = [part.title for part in printed.outline[-1]]
    assert len(headings) > 3
    for heading in headings:
        number = int(re.search(re.escape(heading) + r" ?(\d+)", listed)[1])
        assert heading in text[number - 1]
