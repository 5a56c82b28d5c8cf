"""A written page sheds what blocks its first picture, once and for all."""

from pathlib import Path

import pytest
from book_weight.finish import changes, through
from book_weight.light_pages import size_of
from PIL import Image

OPTIONS = "const DOCUMENTATION_OPTIONS = {};"


@pytest.fixture
def page(tmp_path: Path):
    """A function that lightens what stands in a page of a site, which has two pictures; twice, as a rebuild would."""
    (tmp_path / "_images").mkdir()
    Image.new("RGB", (30, 20)).save(tmp_path / "_images/a.png")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="30pt" height="15pt"/>'
    (tmp_path / "_images/b.svg").write_text(svg, encoding="utf-8")

    def light(text: str) -> str:
        steps = changes(tmp_path / "page.html", OPTIONS, [], "")
        once = through(steps, text)
        assert through(steps, once) == once
        return once.strip()

    return light


def test_scripts_wait(page):
    assert page('<script src="_static/doctools.js?v=1"></script>').startswith("<script defer ")
    module = '<script type="module" src="_static/page.mjs"></script>'
    assert page(module) == module


def test_scripts_without_use_go(page):
    assert page('<script src="searchindex.js"></script>') == ""
    copy = '<script src="_static/copybutton.js"></script>'
    assert page(copy) == ""
    assert "copybutton" in page(f'{copy}<div class="highlight">')


def test_options_stand_in_the_page(page):
    assert page('<script src="/p/_static/documentation_options.js?v=2"></script>') == f"<script>{OPTIONS}</script>"


def test_one_viewport_remains(page):
    first = '<meta name="viewport" content="width=device-width" />'
    assert page(f'{first}\n<title>t</title><meta name="viewport" content="x"/><p>') == f"{first}\n<title>t</title><p>"


def test_pictures_say_their_size(page):
    assert page('<img alt="x" src="_images/a.png" />') == (
        '<img alt="x" src="_images/a.png" width="30" height="20" loading="lazy" />'
    )
    assert 'width="40" height="20"' in page('<img src="_images/b.svg" />')
    icon = '<img src="_static/logo.svg" />'
    assert page(icon) == icon


def test_title_is_said_once(page):
    assert page("<title>Book &#8212; Book</title>") == "<title>Book</title>"
    assert page("<title>Chapter &#8212; Book</title>") == "<title>Chapter &#8212; Book</title>"


def test_size_of_reads_the_view_box(tmp_path: Path):
    file = tmp_path / "c.svg"
    file.write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 12 7"/>', encoding="utf-8")
    assert size_of(file) == (12, 7)
