"""From each equation one click leads to its row in the index, and from the row one click back or on to the code."""

import os
import re
from pathlib import Path

import pytest

from tests.browser.conftest import Visit

# As in conftest.py: another build can be named.
SITE = Path(os.environ.get("SITE", Path(__file__).parents[2] / "_build" / "html"))
INDEX = "appendix/equations.html"
CHAPTERS = sorted(f"chapters/{file.name}" for file in (SITE / "chapters").glob("[0-9A]*.html"))
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS or ["chapters/none.html"])


def labels(page: str) -> list[str]:
    """The labels of a page's equations, in order."""
    return re.findall(r'id="equation-(eq-[^"]+)"', (SITE / page).read_text("utf-8"))


@pytest.fixture(scope="module")
def index(browser, site):
    visit = Visit(browser, site, INDEX)
    yield visit.page
    visit.close()


def test_index_lists_every_equation_in_order(index):
    rows = index.locator("table.equation-index tbody tr").evaluate_all("rows => rows.map(row => row.id)")
    assert rows == [f"row-{label}" for chapter in CHAPTERS for label in labels(chapter)]
    assert rows


def test_index_has_no_empty_cell(index):
    cells = index.locator("table.equation-index :is(td, th)").all_inner_texts()
    assert all(cell.strip() and cell.strip() != "missing" for cell in cells)


def test_index_leads_to_entries_that_exist(index):
    """Of the links within the site; those to the repository are no business of this machine."""
    addresses = index.locator("table.equation-index a.internal").evaluate_all("links => links.map(link => link.href)")
    assert len(addresses) > len(CHAPTERS)
    for address in addresses:
        path, _, anchor = address.partition("#")
        assert f'id="{anchor}"' in (SITE / Path(path).parent.name / Path(path).name).read_text("utf-8"), address


@each_chapter
def test_one_click_leads_to_the_row_and_one_to_equation_or_code(open_page, chapter):
    page = open_page(chapter).page
    label = next((label for label in labels(chapter) if not label.endswith("-definition")), labels(chapter)[0])
    below = page.locator(f"[id='equation-{label}'] + .equation-row a")
    assert re.fullmatch(r"(code and tests|definition) of equation \([\d.]+\)", below.get_attribute("aria-label"))
    below.click()
    page.wait_for_url(f"**/{INDEX}#row-{label}")
    row = page.locator("tr:target")
    assert row.locator("th a").is_visible()
    row.locator("th a").click()
    page.wait_for_url(f"**/{chapter}#equation-{label}")
    page.go_back()
    page.wait_for_url(f"**/{INDEX}#row-{label}")
    if not label.endswith("-definition"):
        row.locator("td:nth-child(3) a").first.click()
        page.wait_for_url("**/appendix/api.html#plainformer.*")
        assert page.locator(":target").is_visible()


# Where the link would lie on the equation, or on its number, or on the text that follows.
OVERLAPS = """links => links.filter((link) => {
    const box = link.getBoundingClientRect();
    const equation = link.parentElement.previousElementSibling;
    const near = [...equation.querySelectorAll('math > *, .eqno'), link.parentElement.nextElementSibling];
    return near.filter(Boolean).map((node) => node.getBoundingClientRect()).some((other) =>
        box.top < other.bottom && other.top < box.bottom && box.left < other.right && other.left < box.right);
}).map((link) => link.getAttribute('aria-label'))"""


def test_link_lies_on_nothing(visited):
    links = visited.page.locator(".equation-row a")
    assert links.count() == len(labels(visited.path))
    for width in (360, 1400):
        visited.page.set_viewport_size({"width": width, "height": 900})
        visited.page.wait_for_timeout(100)
        assert links.evaluate_all(OVERLAPS) == [], width


def test_reference_names_each_public_name_once(browser, site):
    """What the package and its rooms export stands in the index at its end, with a link to its entry."""
    visit = Visit(browser, site, "appendix/api.html")
    links = visit.page.locator("#all-names a.reference").evaluate_all(
        "all => all.map((a) => [a.innerText, a.hash.slice(1), !!document.getElementById(a.hash.slice(1))])"
    )
    visit.close()
    assert all(there for _, _, there in links)
    targets = [target for _, target, _ in links]
    assert len(set(targets)) == len(targets)
    shown = {name.rpartition(".")[2] for name, *_ in links if name.startswith("pf.")}
    source = Path(__file__).parents[2] / "src/plainformer"
    public = set()
    for file in (source / "__init__.py", *source.glob("*/__init__.py")):
        found = re.findall(r"(\w+) as (\w+)", file.read_text("utf-8"))
        public |= {name for name, same in found if name == same} - {"data", "plots", "training"}
    assert public - shown == set()
