"""The schematics: nothing is cut off, and each stands on a page with its words."""

import hashlib
import re
from xml.etree import ElementTree

import pytest
from book import ROOT
from book_meaning.order import lessons

from drawings import sheet
from drawings.draw import drawn
from drawings.sketch import arrow, box, column, row, svg

FILES = drawn()
SVG = "{http://www.w3.org/2000/svg}"


def test_nothing_reaches_over_the_edge(subtests):
    for name in FILES:
        with subtests.test(name):
            root = ElementTree.fromstring(FILES[name])
            _, _, width, height = map(float, root.attrib["viewBox"].split())
            for part in root:
                numbers = [float(part.attrib.get(name, 0)) for name in ("x", "y", "width", "height")]
                assert 0 <= numbers[0] <= numbers[0] + numbers[2] <= width
                assert 0 <= numbers[1] <= numbers[1] + numbers[3] <= height
                for across, down in re.findall(r"(-?[\d.]+),(-?[\d.]+)", part.attrib.get("points", "")):
                    assert 0 <= float(across) <= width
                    assert 0 <= float(down) <= height


def test_each_is_shown_once():
    files = [*(ROOT / "chapters").glob("*.md"), *(ROOT / "appendix").glob("*.md")]
    pages = "".join(page.read_text("utf-8") for page in files)
    shown = re.findall(r"^```{drawing} (\w+)$", pages, re.MULTILINE)
    landing = re.findall(r"drawings/(landing_\w+)\.svg", (ROOT / "index.md").read_text("utf-8"))
    # The map stands on every chapter's page, by `_ext/book_meaning/chapter_map.py`.
    wanted = sorted(name for name in FILES if not name.startswith("map_"))
    assert sorted(f"{name}.svg" for name in [*shown, *landing]) == wanted


def test_map_leads_to_each_chapter_once(subtests):
    for name in ("map_wide.svg", "map_narrow.svg"):
        with subtests.test(name):
            chapters = sorted(page.removeprefix("chapters/") for page in lessons(ROOT))
            assert sorted(re.findall(r'data-chapter="(\w+)"', FILES[name])) == chapters


def test_row_and_column_put_parts_where_they_belong():
    first, second = box("first", "", width=30, height=30), box("second", "", width=20, height=40)
    beside = row(first, second, gap=5)
    assert (beside.width, beside.height) == (55, 40)
    assert (beside.at("first.left"), beside.at("second.top")) == ((0, 20), (45, 0))
    below = column(first, second, gap=5, align=0)
    assert (below.width, below.height) == (30, 75)
    assert below.at("second.right.0.25") == (20, 45)


def test_arrow_ends_at_its_place():
    picture = arrow(
        row(box("a", "", width=30, height=30), box("b", "", width=30, height=30), gap=30), "a.right", "b.left"
    )
    tip = ElementTree.fromstring(svg(picture, "two")).find(f"{SVG}polygon").attrib["points"].split()[0]
    assert tip == "66.0,21.0"  # 6 of margin, 30 of the first box, 30 between them


def test_sheet_is_for_one_page_and_legible_on_paper():
    """Of A4: 190 mm of width, in which a pixel is three quarters of a point."""
    root = ElementTree.fromstring(FILES["sheet_page.svg"])
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert width <= 190 / 25.4 * 96
    assert height <= 277 / 25.4 * 96
    assert min(float(text.attrib["font-size"]) for text in root.findall(f"{SVG}text")) * 0.75 >= 7.5


def test_sheet_refuses_code_that_does_not_claim_its_equation():
    with pytest.raises(LookupError, match="no attend says that it implements"):
        sheet._row("eq-blocks-pre-norm", "attend", "weights @ values")
    with pytest.raises(LookupError, match="attend has no line values @ weights"):
        sheet._row("eq-self-attention-attend", "attend", "values @ weights")


def test_printed_sheet_is_the_drawn_one():
    """`make frames` prints it anew; what was drawn then stands in the file by its checksum."""
    printed = (ROOT / "assets/sheet.pdf").read_bytes()
    assert hashlib.sha256(FILES["sheet_page.svg"].encode()).hexdigest().encode() in printed, "run `make frames`"
