"""Every page of the built site, as a browser sees it: whole, self-contained, legible, accessible."""

import re

import pytest

from tests.browser.conftest import AT_REST, FADED, PHONE, SITE, WIDE

# What axe may still find, each with its reason: (rule, selector, why it stays).
ALLOWED = [
    ("definition-list", "dt.sig > dl", "Sphinx writes the arguments of a long signature as a list without terms"),
]


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
PROSE = """() => {
    const article = document.querySelector('article, main').cloneNode(true);
    article.querySelectorAll('pre, code, script, style, .live-figure').forEach((node) => node.remove());
    return article.textContent;
}"""
UNWRAPPED = """nodes => nodes.filter((node) => !node.closest('.words, .highlight-text')
    && getComputedStyle(node).whiteSpace !== 'pre').length"""


def test_page_is_whole(visited, path):
    """Formulas are MathML that is drawn in the book's own font; pictures have words; scripts and styles are few."""
    page = visited.page
    assert page.title().strip()
    assert page.locator("html").get_attribute("lang") == "en"
    fonts = page.evaluate("document.fonts.load('16px \"STIX Two Math\"').then((found) => found.length)")
    formulas = page.locator("main .math").evaluate_all(FORMULAS)
    assert [text for text, drawn in formulas if not drawn] == []
    assert fonts == 1 or not formulas
    # What was overlooked would still stand there with its backslashes, between dollars or brackets.
    assert re.findall(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$[^$\s]+\$", page.evaluate(PROSE)) == []
    # The logo outside `main` needs no words: the book's name stands beside it. A file's name is what Sphinx writes
    # when an author gave none.
    images = page.locator("main img").evaluate_all("nodes => nodes.map(n => [n.src, n.getAttribute('alt')])")
    assert [src for src, alt in images if not alt or re.search(r"\.(png|svg|jpe?g|gif)$", alt)] == []
    assert page.locator(".highlight pre").evaluate_all(UNWRAPPED) == 0
    # Nothing is fetched for the search, and no script holds up the first picture.
    assert page.locator("head script[src]:not([defer]):not([async]):not([type=module])").count() == 0
    assert page.locator("link[rel=stylesheet]").count() <= 2
    assert path == "search.html" or not [name for name in visited.weights if "search" in name.rpartition("/")[2]]


def test_page_weighs_little(visited):
    """Under 1.5 MB as it is sent, with all that its figures fetch, and of the book's own modules under 90 kB."""
    modules = {address: size for address, size in visited.weights.items() if ".mjs" in address}
    for weights, least, most in ((visited.weights, 50_000, 1_500_000), (modules, 2_000, 90_000)):
        heaviest = sorted(weights.items(), key=lambda item: -item[1])[:5]
        assert least < sum(weights.values()) < most, heaviest


# What sticks out, but for what scrolls inside a box of its own.
CULPRITS = """() => [...document.querySelectorAll('main *')].filter((node) => {
    if (node.getBoundingClientRect().right <= window.innerWidth + 1) return false;
    for (let box = node; box; box = box.parentElement) {
        if (getComputedStyle(box).overflowX !== 'visible') return false;
    }
    return true;
}).slice(0, 5).map((node) => node.outerHTML.slice(0, 120))"""
# How high each section is, and how much place is kept for it before it is laid out.
PLACES = """sections => sections.map((section) => {
    const [kept] = getComputedStyle(section).containIntrinsicHeight.match(/[\\d.]+(?=px)/);
    return [section.getBoundingClientRect().height, Number(kept)];
})"""
# Where the link to its row would lie on an equation, or on its number, or on the text that follows.
OVERLAPS = """links => links.filter((link) => {
    const box = link.getBoundingClientRect();
    const equation = link.parentElement.previousElementSibling;
    const near = [...equation.querySelectorAll('math > *, .eqno'), link.parentElement.nextElementSibling];
    return near.filter(Boolean).map((node) => node.getBoundingClientRect()).some((other) =>
        box.top < other.bottom && other.top < box.bottom && box.left < other.right && other.left < box.right);
}).map((link) => link.getAttribute('aria-label'))"""


def test_page_fits_its_window(visited, path):
    """It does not scroll sideways, and sections have about their place kept: else it would jump as one scrolls."""
    page, links = visited.page, visited.page.locator(".equation-row a")
    assert links.count() == (SITE / path).read_text("utf-8").count('id="equation-eq-')
    try:
        for size in (PHONE, WIDE):
            page.set_viewport_size(size)
            page.evaluate(AT_REST)
            excess = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert excess <= 1, page.evaluate(CULPRITS)
            places = page.locator("section[style*='--room']").evaluate_all(PLACES)
            if len(places) > 3:  # most are within the factor, and all of a page together
                assert 0.8 < sum(kept for _, kept in places) / sum(height for height, _ in places) < 1.8
            assert links.evaluate_all(OVERLAPS) == []
    finally:
        page.set_viewport_size(WIDE)


# Entries of the reference and of the indices are alike, and so are formulas, and words of code of one kind: axe, which
# takes minutes over all of them, sees the first. The others are taken out of the page for the time being.
SHORTEN = """() => {
    const alike = [...document.querySelectorAll(`dl.py ~ dl.py, #all-names li:nth-child(n + 9),
        .equation-index tr:nth-child(n + 3), dl.glossary :is(dt, dd):nth-of-type(n + 9),
        .bd-sidebar-secondary li li:nth-child(n + 9)`)];
    const seen = {};
    for (const node of document.querySelectorAll('math, pre span[class]')) {
        const place = node.closest('pre')?.parentElement.parentElement.className ?? node.closest('a, li, td')?.tagName;
        const kind = [node.tagName, node.className, place].join();
        seen[kind] = (seen[kind] ?? 0) + 1;
        if (seen[kind] > 8) alike.push(node);
    }
    window.alike = alike.map((node) => {
        const mark = document.createComment('');
        node.replaceWith(mark);
        return [mark, node];
    });
}"""
RESTORE = "() => { for (const [mark, node] of window.alike.reverse()) mark.replaceWith(node); }"

# The dark mode differs in its colours only, so only the rules about colours are tried again.
CHECKS = {
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}


def test_axe_finds_nothing(visited):
    from axe_playwright_python.sync_playwright import Axe

    found = []
    visited.page.evaluate(SHORTEN)
    for mode, rules in CHECKS.items():
        visited.theme(mode)
        report = Axe().run(visited.page, options={"runOnly": rules, "resultTypes": ["violations"]})
        found += [
            f"{mode}, {fault['id']}: {node['target']} {node['html'][:160]} {node.get('failureSummary', '')}"
            for fault in report.response["violations"]
            for node in fault["nodes"]
            if not is_allowed(visited.page, fault["id"], node["target"])
        ]
    visited.theme("light")
    visited.page.evaluate(RESTORE)
    assert found == []


def is_allowed(page, rule: str, target: list[str]) -> bool:
    selectors = [selector for name, selector, _ in ALLOWED if name == rule]
    return bool(selectors) and page.locator(target[0]).first.evaluate(
        "(node, s) => node.matches(s)", ", ".join(selectors)
    )


@pytest.mark.parametrize(("by", "size"), [("picture", WIDE), ("key", PHONE)], ids=["picture", "key"])
def test_a_figure_that_is_started_is_seen_from_its_top(open_page, by, size):
    """A click on its picture starts it as well; who pressed the button by a key goes on inside the figure."""
    page = open_page("chapters/decoder.html", viewport=size).page
    figure = page.locator("[data-widget=machine]")
    figure.evaluate("figure => figure.scrollIntoView()")
    button = figure.locator(".lf-start").bounding_box()
    assert button["y"] + button["height"] <= size["height"]
    page.evaluate("window.scrollBy(0, 300)")
    if by == "picture":
        page.mouse.click(size["width"] / 2, 200)
    else:
        figure.locator(".lf-start").press("Enter")
    page.locator(".live-figure-mounted[data-widget=machine]").wait_for()
    page.wait_for_function("document.querySelector('[data-widget=machine]').getBoundingClientRect().top >= 0")
    assert page.evaluate("document.activeElement.matches('.live-figure-stage *')") == (by == "key")


def test_article_reads_without_javascript(browser, site):
    page = browser.new_context(viewport=WIDE, java_script_enabled=False).new_page()
    page.goto(f"{site}chapters/self_attention.html")
    assert page.locator("#equation-eq-self-attention-attend math").bounding_box()["height"] > 20
    assert page.locator(".live-figure-fallback img").first.is_visible()
    page.context.close()


def test_formula_is_copied_as_tex_and_a_folded_title_leads_to_its_exercise(open_page):
    visit = open_page("chapters/self_attention.html", permissions=["clipboard-read", "clipboard-write"])
    page = visit.page
    equation = page.locator("#equation-eq-self-attention-attend")
    equation.evaluate("node => getSelection().selectAllChildren(node)")
    page.keyboard.press("Control+c")
    tex = equation.locator("math").get_attribute("alttext")
    assert r"\operatorname{softmax}" in tex
    assert equation.locator("msqrt").count() == 1
    assert page.evaluate("navigator.clipboard.readText()").split() == f"$${tex}$$".split()
    # The solution opens, too.
    solution = page.locator(".solution.dropdown").first
    assert "toggle-hidden" in solution.get_attribute("class")
    link = solution.locator(".admonition-title a")
    address = link.get_attribute("href")
    link.click()
    page.wait_for_url(f"**{address}")
    assert "toggle-hidden" not in solution.get_attribute("class")
    assert visit.errors == []


def test_an_old_address_leads_on_and_what_was_read_there_stays_read(open_page):
    page = open_page("chapters/self_attention.html").page
    page.evaluate("localStorage.setItem('plainformer', '{\"read\": {\"chapters/02_self_attention.html\": true}}')")
    page.goto(page.url.replace("self_attention.html", "02_self_attention.html#masks"))
    page.wait_for_url("**/chapters/self_attention.html#masks")
    assert page.locator(".chapter-read input").is_checked()


def test_missing_page_leads_back(open_page):
    """Whatever the depth of the address, the page for missing pages finds its styles and its links."""
    visit = open_page("no/such/page.html")
    assert "not found" in visit.page.title().lower()
    # The browser itself reports the status of the page, and nothing else may be missing.
    assert [error for error in visit.errors if "404" not in error] == []
    assert all(visit.weights.values())
    visit.page.locator("nav a[href*='self_attention']").first.click()
    visit.page.wait_for_url("**/self_attention.html")


def test_theme_button_switches_colours(open_page):
    page = open_page("index.html", color_scheme="light").page
    modes, colours = set(), set()
    for _ in range(3):
        page.locator("button.theme-switch-button:visible").first.click()
        modes.add(page.locator("html").get_attribute("data-theme"))
        page.evaluate(FADED)
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert modes == {"light", "dark"}
    assert len(colours) == 2
