"""Every page of the built site, as a browser sees it: whole, self-contained, legible, accessible."""

import re

import pytest

PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1400, "height": 900}

# What axe may still find, each with its reason: (rule, selector, why it stays).
ALLOWED = [
    ("definition-list", "dt.sig > dl", "Sphinx writes the arguments of a long signature as a list without terms"),
]


@pytest.mark.smoke
def test_page_loads_without_errors(visited):
    assert visited.errors == []


@pytest.mark.smoke
def test_page_asks_no_other_host(visited):
    assert visited.foreign == []


def test_page_has_title_and_language(visited):
    assert visited.page.title().strip()
    assert visited.page.locator("html").get_attribute("lang") == "en"


# A formula is whole when each of its letters and signs has the size of something drawn. Sections that wait to be laid
# out are laid out for the moment.
FORMULAS = """nodes => {
    const whole = document.head.appendChild(document.createElement('style'));
    whole.textContent = 'main section { content-visibility: visible !important; }';
    const found = nodes.filter((node) => node.checkVisibility()).map((node) => {
        const formula = node.querySelector(':scope > math');
        const parts = formula ? [...formula.querySelectorAll('mi, mn, mo, mtext')] : [];
        const seen = parts.filter((part) => part.textContent.trim() && part.textContent !== '\u2061');
        const boxes = seen.map((part) => part.getBoundingClientRect());
        return [node.textContent, seen.length > 0 && boxes.every((box) => box.width > 0 && box.height > 0)];
    });
    whole.remove();
    return found;
}"""


def test_page_sets_its_mathematics(visited):
    """Every formula is MathML that is drawn, in the book's own font, and without a script."""
    fonts = visited.page.evaluate("document.fonts.load('16px \"STIX Two Math\"').then((found) => found.length)")
    formulas = visited.page.locator("main .math").evaluate_all(FORMULAS)
    assert [text for text, drawn in formulas if not drawn] == []
    # What was overlooked would still stand there with its backslashes, between dollars or brackets.
    left = re.findall(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$[^$\s]+\$", visited.page.evaluate(PROSE))
    assert left == []
    assert fonts == 1 or not formulas


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


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_button_that_starts_a_model_is_in_sight(open_page, size):
    page = open_page("chapters/07_decoder.html", viewport=size).page
    page.locator("[data-widget=machine]").evaluate("figure => figure.scrollIntoView()")
    button = page.locator("[data-widget=machine] .lf-start").bounding_box()
    assert button["y"] + button["height"] <= size["height"]


@pytest.mark.parametrize("by", ["picture", "key"])
def test_a_figure_that_is_started_is_seen_from_its_top(open_page, by):
    """A click on its picture starts it as well; who pressed the button by a key goes on inside the figure."""
    page = open_page("chapters/07_decoder.html").page
    figure = page.locator("[data-widget=machine]")
    figure.evaluate("figure => { figure.scrollIntoView(); window.scrollBy(0, 300) }")
    if by == "picture":
        page.mouse.click(WIDE["width"] / 2, 200)
    else:
        figure.locator(".lf-start").press("Enter")
    page.locator(".live-figure-mounted[data-widget=machine]").wait_for()
    page.wait_for_function("document.querySelector('[data-widget=machine]').getBoundingClientRect().top >= 0")
    assert page.evaluate("document.activeElement.matches('.live-figure-stage *')") == (by == "key")


def test_scripts_of_the_book_are_small(visited):
    """What a page with all its figures fetches of the book's own modules, as it is sent."""
    modules = {address: size for address, size in visited.weights.items() if ".mjs" in address}
    heaviest = sorted(modules.items(), key=lambda item: -item[1])[:5]
    assert 2_000 < sum(modules.values()) < 90_000, (sum(modules.values()), heaviest)


def test_page_is_shown_before_scripts_run(visited, path):
    """Nothing is fetched for the search, and no script holds up the first picture."""
    page = visited.page
    blocking = page.locator("head script[src]:not([defer]):not([async]):not([type=module])")
    assert blocking.count() == 0
    assert page.locator("link[rel=stylesheet]").count() <= 2
    fetched = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert path == "search.html" or not [name for name in fetched if "search" in name]


def test_article_reads_without_javascript(browser, site):
    page = browser.new_context(viewport=WIDE, java_script_enabled=False).new_page()
    page.goto(f"{site}chapters/02_self_attention.html")
    assert page.locator("#equation-eq-self-attention-attend math").bounding_box()["height"] > 20
    assert page.locator(".live-figure-fallback img").first.is_visible()
    page.context.close()


def test_folded_title_with_a_link_opens(open_page):
    """The link leads to the exercise, and the solution opens."""
    visit = open_page("chapters/02_self_attention.html")
    solution = visit.page.locator(".solution.dropdown").first
    assert "toggle-hidden" in solution.get_attribute("class")
    link = solution.locator(".admonition-title a")
    address = link.get_attribute("href")
    link.click()
    visit.page.wait_for_url(f"**{address}")
    assert "toggle-hidden" not in solution.get_attribute("class")
    assert visit.errors == []


def test_copied_formula_is_tex(open_page):
    page = open_page("chapters/02_self_attention.html", permissions=["clipboard-read", "clipboard-write"]).page
    equation = page.locator("#equation-eq-self-attention-attend")
    equation.evaluate("node => getSelection().selectAllChildren(node)")
    page.keyboard.press("Control+c")
    tex = equation.locator("math").get_attribute("alttext")
    assert page.evaluate("navigator.clipboard.readText()").split() == f"$${tex}$$".split()


def test_boxes_that_scroll_are_reached_by_tab(open_page):
    page = open_page("chapters/02_self_attention.html", viewport=PHONE).page
    boxes = page.locator("main pre").evaluate_all("""nodes => nodes.filter((node) => node.checkVisibility())
        .map((node) => [node.scrollWidth > node.clientWidth, node.tabIndex === 0])""")
    assert any(scrolls for scrolls, _ in boxes)
    assert all(reached for scrolls, reached in boxes if scrolls)


# How high each section is, and how much place is kept for it before it is laid out.
PLACES = """sections => sections.map((section) => {
    const [kept] = getComputedStyle(section).containIntrinsicHeight.match(/[\\d.]+(?=px)/);
    return [section.id, section.getBoundingClientRect().height, Number(kept)];
})"""


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_sections_have_about_their_place_kept(visited, size):
    """Or else the page would jump while one scrolls; most are within the factor, and all of a page together."""
    visited.page.set_viewport_size(size)
    places = visited.page.locator("section[style*='--room']").evaluate_all(PLACES)
    visited.page.set_viewport_size(WIDE)
    if len(places) > 3:
        assert 0.8 < sum(kept for *_, kept in places) / sum(height for _, height, _ in places) < 1.8


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
