"""Links in a chapter's sentences that set its figure, and figures that stay beside the text."""

import re

import pytest

from tests.browser.conftest import AT_REST, PHONE, SITE

LINK = re.compile(r'class="sets-figure[^"]*" href="#(fig-[\w-]+)\?([^"]+)"')
PAGES = {
    f"chapters/{file.name}": LINK.findall(file.read_text("utf-8"))
    for file in sorted((SITE / "chapters").glob("*.html"))
}
SETTING = [path for path, links in PAGES.items() if links] or ["chapters/none.html"]


def test_at_least_five_chapters_set_their_figures():
    assert len(SETTING) >= 5


@pytest.mark.parametrize("path", SETTING)
def test_each_link_sets_its_figure_which_stays_beside_its_paragraphs(open_page, path):
    visit = open_page(path, viewport={"width": 1280, "height": 800})
    page, links = visit.page, visit.page.locator("a.sets-figure")
    assert links.count() == len(PAGES[path])
    # At the last link of a figure one still sees it: at its side, below the head of the page.
    last = page.locator(".beside a.sets-figure").last
    beside = page.locator(".beside:has(a.sets-figure) > figure").last
    for _ in range(3):  # sections on the way may yet turn out higher or lower
        last.evaluate("node => node.scrollIntoView({block: 'center'})")
        page.evaluate(AT_REST)
    box, place = beside.bounding_box(), last.bounding_box()
    assert place["x"] + place["width"] < box["x"]
    assert min(box["y"] + box["height"], 800) - max(box["y"], 0) > 350
    # Nothing lies over it.
    at = [box["x"] + box["width"] - 40, max(box["y"], 70) + 100]
    assert beside.evaluate("(node, at) => node.contains(document.elementFromPoint(...at))", at)
    for link in links.all():
        name = link.get_attribute("href")[1:].partition("?")[0]
        figure = page.locator(f"#{name} .live-figure-mounted, #{name} .lf").last
        link.scroll_into_view_if_needed()
        figure.wait_for()
        page.wait_for_function("(node) => node.dataset.state", arg=figure.element_handle())
        if figure.get_by_role("button", name="Reset").count():
            figure.get_by_role("button", name="Reset").click()
        before = figure.get_attribute("data-state")
        link.click()
        page.wait_for_function(
            "([node, before]) => node.dataset.state !== before", arg=[figure.element_handle(), before]
        )


def test_figure_stands_above_its_paragraphs_on_a_phone(open_page):
    page = open_page(SETTING[0], viewport=PHONE).page
    figure, words = page.locator(".beside > figure").first, page.locator(".beside > p").first
    assert figure.bounding_box()["x"] == words.bounding_box()["x"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("name", ["positions", "recall", "notation"])
def test_controls_stay_in_sight_on_a_phone(open_page, name):
    """Their effect passes below them: they are seen when the figure has been scrolled by half a screen."""
    pages = {"positions": "positions", "recall": "self_attention", "notation": "notation"}
    page = open_page(f"chapters/{pages[name]}.html", viewport=PHONE).page
    figure = page.locator(f".live-figure[data-widget={name}]")
    for _ in range(3):
        figure.scroll_into_view_if_needed()
        page.evaluate(AT_REST)
    figure.locator(".lf-controls").wait_for()
    figure.evaluate("node => scrollTo(0, scrollY + node.getBoundingClientRect().top + 450)")
    page.evaluate(AT_REST)
    box, head = figure.locator(".lf-controls").bounding_box(), page.locator(".bd-header-article").bounding_box()
    assert head["y"] + head["height"] - 2 <= box["y"] < 120
    assert box["height"] < 0.42 * 844
