"""From each equation one click leads to its row in the index, and from the row one click back or on to the code."""

import re
from pathlib import Path

import pytest
from book import ROOT
from book_meaning.order import chapters

from tests.browser.conftest import SITE, Visit

INDEX = "appendix/equations.html"
CHAPTERS = [f"{page}.html" for page in chapters(ROOT) if (SITE / f"{page}.html").is_file()]


def labels(page: str) -> list[str]:
    """The labels of a page's equations, in order."""
    return re.findall(r'id="equation-(eq-[^"]+)"', (SITE / page).read_text("utf-8"))


@pytest.fixture(scope="module")
def index(browser, site):
    visit = Visit(browser, site, INDEX)
    yield visit.page
    visit.close()


def test_index_lists_every_equation_in_order_and_leads_to_entries_that_exist(index):
    rows = index.locator("table.equation-index tbody tr")
    listed = rows.evaluate_all("rows => rows.map(row => row.id)")
    assert listed == [f"row-{label}" for chapter in CHAPTERS for label in labels(chapter)]
    assert rows.locator("div.math").count() == len(listed) > 50
    cells = index.locator("table.equation-index :is(td, th)").all_inner_texts()
    assert all(cell.strip() and cell.strip() != "missing" for cell in cells)
    # Of the links within the site; those to the repository are no business of this machine.
    addresses = index.locator("table.equation-index a.internal").evaluate_all("links => links.map(link => link.href)")
    assert len(addresses) > len(CHAPTERS)
    for address in addresses:
        path, _, anchor = address.partition("#")
        assert f'id="{anchor}"' in (SITE / Path(path).parent.name / Path(path).name).read_text("utf-8"), address


@pytest.mark.parametrize("chapter", ["chapters/self_attention.html", "chapters/notation.html"])
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
