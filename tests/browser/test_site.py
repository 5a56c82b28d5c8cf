"""Every page of the built site, as a browser sees it: whole, self-contained, legible, accessible."""

import re

import pytest

PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1400, "height": 900}

# What axe may still find, each with its reason: (rule, selector, why it stays).
ALLOWED = [
    ("definition-list", "dt.sig > dl", "Sphinx writes the arguments of a long signature as a list without terms"),
]


def test_page_loads_without_errors(visited):
    assert visited.errors == []


def test_page_asks_no_other_host(visited):
    assert visited.foreign == []


def test_page_has_title_and_language(visited):
    assert visited.page.title().strip()
    assert visited.page.locator("html").get_attribute("lang") == "en"


# A formula is whole when each of its letters and signs has the size of something drawn.
FORMULAS = """nodes => nodes.map((node) => {
    const formula = node.querySelector(':scope > math');
    const parts = formula ? [...formula.querySelectorAll('mi, mn, mo, mtext')] : [];
    const seen = parts.filter((part) => part.textContent.trim() && part.textContent !== '\u2061');
    const boxes = seen.map((part) => part.getBoundingClientRect());
    return [node.textContent, seen.length > 0 && boxes.every((box) => box.width > 0 && box.height > 0)];
})"""


def test_page_sets_its_mathematics(visited):
    """Every formula is MathML that is drawn, in the book's own font, and without a script."""
    formulas = visited.page.locator("main .math").evaluate_all(FORMULAS)
    assert [text for text, drawn in formulas if not drawn] == []
    # What was overlooked would still stand there with its backslashes, between dollars or brackets.
    left = re.findall(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$[^$\s]+\$", visited.page.evaluate(PROSE))
    assert left == []
    loaded = visited.page.evaluate("document.fonts.check('16px \"STIX Two Math\"', 'x')")
    assert loaded or not formulas


PROSE = """() => {
    const article = document.querySelector('article, main').cloneNode(true);
    article.querySelectorAll('pre, code, script, style, .live-figure').forEach((node) => node.remove());
    return article.textContent;
}"""


def test_formula_keeps_its_tex(open_page):
    visit = open_page("chapters/02_self_attention.html")
    equation = visit.page.locator("#equation-eq-self-attention-attend math")
    assert r"\operatorname{softmax}" in equation.get_attribute("alttext")
    assert equation.locator("msqrt").count() == 1


def test_images_have_alternative_text(visited):
    # The logo outside `main` needs none: the book's name stands beside it.
    images = visited.page.locator("main img").evaluate_all("nodes => nodes.map(n => [n.src, n.getAttribute('alt')])")
    # A file's name is what Sphinx writes when an author gave no words.
    missing = [src for src, alt in images if not alt or re.search(r"\.(png|svg|jpe?g|gif)$", alt)]
    assert missing == []


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_page_does_not_scroll_sideways(visited, size):
    page = visited.page
    page.set_viewport_size(size)
    page.wait_for_timeout(100)
    excess = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    # Name what sticks out, but for what scrolls inside a box of its own.
    culprits = page.evaluate("""() => [...document.querySelectorAll('main *')].filter((node) => {
        if (node.getBoundingClientRect().right <= window.innerWidth + 1) return false;
        for (let box = node; box; box = box.parentElement) {
            if (getComputedStyle(box).overflowX !== 'visible') return false;
        }
        return true;
    }).slice(0, 5).map((node) => node.outerHTML.slice(0, 120))""")
    page.set_viewport_size(WIDE)
    assert excess <= 1, culprits


# The dark mode differs in its colours only, so only the rules about colours are tried again.
CHECKS = {
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}


@pytest.mark.parametrize("mode", CHECKS)
def test_axe_finds_nothing(visited, mode):
    from axe_playwright_python.sync_playwright import Axe

    visited.theme(mode)
    report = Axe().run(visited.page, options={"runOnly": CHECKS[mode], "resultTypes": ["violations"]})
    visited.theme("light")
    found = [
        f"{fault['id']}: {node['target']} {node['html'][:160]} {node.get('failureSummary', '')}"
        for fault in report.response["violations"]
        for node in fault["nodes"]
        if not is_allowed(visited.page, fault["id"], node["target"])
    ]
    assert found == []


def is_allowed(page, rule: str, target: list[str]) -> bool:
    selectors = [selector for name, selector, _ in ALLOWED if name == rule]
    return bool(selectors) and page.locator(target[0]).first.evaluate(
        "(node, s) => node.matches(s)", ", ".join(selectors)
    )


def test_page_weighs_little(visited):
    """Under 1.5 MB as it is sent, with all that its figures fetch."""
    heaviest = sorted(visited.weights.items(), key=lambda item: -item[1])[:5]
    assert 50_000 < sum(visited.weights.values()) < 1_500_000, (sum(visited.weights.values()), heaviest)


def test_search_works_without_network(open_page):
    visit = open_page("index.html")
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type("softmax")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**/search.html?q=softmax*")
    result = visit.page.locator("#search-results li a").first
    result.wait_for()
    visit.page.wait_for_load_state("networkidle")  # each result fetches its page for an excerpt
    result.click()
    visit.page.wait_for_load_state("networkidle")
    assert "softmax" in visit.page.locator("main").inner_text().lower()
    # What the search page still fetched when it was left, the browser has given up.
    assert [error for error in visit.errors if not error.endswith("net::ERR_ABORTED")] == []
    assert visit.foreign == []


def test_missing_page_leads_back(open_page):
    """Whatever the depth of the address, the page for missing pages finds its styles and its links."""
    visit = open_page("no/such/page.html")
    assert "not found" in visit.page.title().lower()
    # The browser itself reports the status of the page, and nothing else may be missing.
    assert [error for error in visit.errors if "404" not in error] == []
    assert all(visit.weights.values())
    visit.page.locator("nav a[href*='02_self_attention']").first.click()
    visit.page.wait_for_url("**/02_self_attention.html")


def test_theme_button_switches_colours(open_page):
    visit = open_page("index.html", color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    modes, colours = set(), set()
    for _ in range(3):
        visit.page.locator("button.theme-switch-button:visible").first.click()
        modes.add(visit.page.locator("html").get_attribute("data-theme"))
        visit.page.wait_for_timeout(300)
        colours.add(visit.page.evaluate(background))
    assert modes == {"light", "dark"}
    assert len(colours) == 2
