"""The book as one PDF: its pages become one, in which every link leads to a place, and Chromium prints it."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

SCRIPT = Path(__file__).parents[2] / "tools" / "make_pdf.py"
SPEC = importlib.util.spec_from_file_location("make_pdf", SCRIPT)
make_pdf = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_pdf)


@pytest.fixture(scope="module")
def whole() -> str:
    return make_pdf.assemble(make_pdf.pages())


def test_every_link_leads_to_a_place(whole):
    assert make_pdf.lost_links(whole) == set()


def test_pictures_are_there_and_solutions_are_open(whole):
    soup = BeautifulSoup(whole, "html.parser")
    missing = [img["src"] for img in soup.select("img") if not (make_pdf.SITE / img["src"]).is_file()]
    assert missing == []
    # A live figure is its static frame.
    assert len(soup.select(".live-figure img")) == len(soup.select(".live-figure")) > 10
    assert not soup.select("details, .chapter-map, [type=module]")


def test_numbers_stay(whole):
    """Figures and equations keep the numbers that they have on their pages."""
    page = (make_pdf.SITE / "chapters/02_self_attention.html").read_text("utf-8")
    for number in ("Figure 2.1 ", "(2.11)", "Exercise 2.1"):
        assert number in BeautifulSoup(page, "html.parser").get_text()
        assert number in BeautifulSoup(whole, "html.parser").get_text()


def test_chapter_prints_with_links(tmp_path):
    """One short chapter: several pages, an outline, and links within the file."""
    source, target = make_pdf.SITE / "one-chapter.html", tmp_path / "one.pdf"
    source.write_text(make_pdf.assemble(["index", "chapters/A_notation"]), encoding="utf-8")
    # In a process of its own: the other tests of this one have a browser open.
    code = f"import make_pdf, pathlib; make_pdf.print_page(*map(pathlib.Path, {[str(source), str(target)]}))"
    try:
        subprocess.run([sys.executable, "-c", code], check=True, cwd=SCRIPT.parent)
    finally:
        source.unlink()
    written = target.read_bytes()
    assert written.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", written)) > 5
    assert written.count(b"/Subtype /Link") > 20
    assert b"/Dests" in written or b"/Dest " in written
