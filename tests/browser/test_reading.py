"""What makes the pages good to read: type, code, the map, the cards, the landing page, a phone."""

import re

import pytest
from book import ROOT
from book_meaning.order import lessons

from tests.browser.conftest import AT_REST, LAID_OUT, PHONE, SITE, TIMERS, WIDE, pages

DESKTOP = {"width": 1280, "height": 800}
CHAPTERS = [f"{page}.html" for page in lessons(ROOT) if (SITE / f"{page}.html").is_file()]
each_chapter = pytest.mark.parametrize("path", CHAPTERS or ["chapters/none.html"], scope="session")
ONE = CHAPTERS[2] if len(CHAPTERS) > 2 else "chapters/none.html"


@pytest.fixture
def open_whole(open_page):
    """Open a page with all its sections laid out: otherwise each is when it comes into sight."""

    def open_one(path: str, **options):
        page = open_page(path, **options).page
        lay_out(page)
        return page

    return open_one


def lay_out(page):
    page.add_style_tag(content=LAID_OUT)
    page.evaluate("dispatchEvent(new Event('resize'))")
    page.evaluate(AT_REST)


# --- the head ----------------------------------------------------------------------------------------------------


def tag(page: str, name: str) -> str:
    """What a page says of itself under a name."""
    found = re.search(rf'<meta (?:name|property)="{name}" content="([^"]*)"', (SITE / page).read_text("utf-8"))
    assert found, f"{page} says nothing of {name}"
    return found[1]


def test_shared_links_have_a_picture_and_a_description():
    for path in set(pages()) - {"404.html", "search.html", "genindex.html"}:
        folder, name = tag(path, "og:image").split("/")[-2:]
        size = [int(tag(path, f"og:image:{side}")).to_bytes(4, "big") for side in ("width", "height")]
        assert (SITE / folder / name).read_bytes()[16:24] == b"".join(size), path
        assert len(tag(path, "og:image:alt")) > 50, path
        assert len(tag(path, "og:description")) > 50, path
        assert "\\" not in tag(path, "description"), path


def test_a_shared_chapter_shows_its_first_whole_figure():
    assert tag("index.html", "og:image").endswith("/_static/card.png")
    assert tag("chapters/relations.html", "og:image").endswith("/_images/kernel.png")
    assert tag("chapters/self_attention.html", "og:image").endswith("/_images/attention.png")
    title = re.search(r"<title>(.*?)</title>", (SITE / "index.html").read_text("utf-8"), re.DOTALL)
    assert title[1].count("Plainformer") == 1


# --- type and code -----------------------------------------------------------------------------------------------

# Letters per line of each paragraph of at least three lines.
MEASURE = """() => [...document.querySelectorAll('section > p')].filter((p) => !p.querySelector('.math')).map((p) => {
    const lines = Math.round(p.offsetHeight / parseFloat(getComputedStyle(p).lineHeight));
    return [lines, p.textContent.length / lines];
}).filter(([lines]) => lines > 2).map(([, letters]) => letters)"""


SHIFTS = """async () => {
    const shifts = [];
    const note = (entries) => shifts.push(...entries.map((entry) => entry.value));
    const observer = new PerformanceObserver((list) => note(list.getEntries()));
    observer.observe({ type: 'layout-shift', buffered: true });
    await document.fonts.ready;
    for (let n = 0; n < 10; n++) await nextFrame();
    note(observer.takeRecords());
    return shifts;
}"""


def test_fonts_move_nothing_when_they_come(browser, site):
    """Each font has a fallback of its own width. Nobody has scrolled yet: then sections would be laid out, too."""
    page = browser.new_page(viewport=WIDE)
    page.add_init_script(TIMERS)
    page.goto(site + ONE)
    assert sum(page.evaluate(SHIFTS)) < 0.1
    page.close()


def test_letters_are_the_book_s_own_and_lines_have_a_measure(open_whole):
    page = open_whole(ONE)
    assert page.evaluate("document.fonts.check('16px \"Plainformer Sans\"')")
    assert page.evaluate("document.fonts.check('14px \"Plainformer Mono\"')")
    letters = sorted(page.evaluate(MEASURE))
    assert 58 < letters[len(letters) // 2] < 76
    # How far, in em, each root goes on behind what stands under it.
    page.evaluate("document.fonts.load('16px \"STIX Two Math\"')")
    holes = page.locator("msqrt:visible").evaluate_all(
        "roots => roots.map((root) => [root, root.lastElementChild].map((node) => node.getBoundingClientRect().right)"
        ".reduce((whole, inside) => whole - inside) / parseFloat(getComputedStyle(root).fontSize))"
    )
    assert len(holes) > 5
    assert max(holes) < 0.1


# --- notes in the margin -----------------------------------------------------------------------------------------

# The notes of a page that do not stand at the right of their paragraph, or lie over another box.
STRAY = """notes => {
    const boxes = [...document.querySelectorAll(
        'article :is(p, pre, table, figure, details, .admonition, div.math, aside.margin), .bd-sidebar-secondary',
    )].map((node) => [node, node.getBoundingClientRect()]).filter(([, box]) => box.width && box.height);
    return notes.filter((note) => {
        const own = note.getBoundingClientRect();
        const words = note.previousElementSibling.getBoundingClientRect();
        const isBeside = own.left > words.right && own.top < words.bottom && own.bottom > words.top;
        return !isBeside || boxes.some(([node, box]) => !note.contains(node) && own.left < box.right
            && box.left < own.right && own.top < box.bottom && box.top < own.bottom);
    }).map((note) => note.textContent.trim());
}"""
# Those that do not stand between their paragraph and what comes next.
OUT_OF_THE_FLOW = """notes => notes.filter((note) => {
    const [before, own, after] = [note.previousElementSibling, note, note.nextElementSibling]
        .map((node) => node?.getBoundingClientRect());
    return own.left !== before.left || own.top < before.bottom || after?.top < own.bottom;
}).map((note) => note.textContent.trim())"""


# Boxes of a kind that are seen and wider than their place.
TOO_WIDE = """nodes => nodes.filter((node) => node.offsetHeight && node.scrollWidth > node.clientWidth + 1)
    .map((node) => node.textContent.trim().slice(0, 80))"""
UNFOLD = """() => {
    for (const fold of document.querySelectorAll('article details')) fold.open = true;
    for (const fold of document.querySelectorAll('.toggle-hidden')) fold.classList.remove('toggle-hidden');
}"""
LETTERS = {
    "article .cell_output img:not(.photograph)": "all => all.map((one) => 11 * 96 / 72 * one.width / one.naturalWidth)",
    "figure.drawing svg": "all => all.map((one) => 13 * one.getBoundingClientRect().width / one.viewBox.baseVal.width)",
}


def resize(page, size):
    page.set_viewport_size(size)
    page.evaluate(AT_REST)


@each_chapter
def test_chapter_is_read_on_a_desktop_and_a_phone(open_page, path):
    """First the page as it opens, then with its sections laid out, at last with all that is folded open."""
    page = open_page(path, viewport=DESKTOP).page
    folds = page.locator("article .sd-dropdown")
    for size in (PHONE, DESKTOP):
        # The figure begins below a question, and above the lines that fold the goals and the letters away.
        resize(page, size)
        figure = page.locator(".live-figure").first
        assert figure.evaluate("node => node.getBoundingClientRect().top") < size["height"]
        assert [folds.nth(n).evaluate("node => node.open") for n in range(2)] == [False, False]
        assert all(folds.nth(n).bounding_box()["height"] < 90 for n in range(2))
    lay_out(page)
    # A note stands beside its paragraph, and in the flow where there is no room.
    notes = page.locator("article aside.margin")
    for size, wrong in (({"width": 1920, "height": 1080}, STRAY), (DESKTOP, OUT_OF_THE_FLOW), (PHONE, OUT_OF_THE_FLOW)):
        resize(page, size)
        assert notes.evaluate_all(wrong) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    # Letters in pictures: plots have eleven points, schematics thirteen pixels; none of them ends below eleven pixels.
    page.locator("article .cell_output img").evaluate_all(
        "images => Promise.all(images.map((one) => { one.loading = 'eager'; return one.decode(); }))"
    )
    for kind, sizes in LETTERS.items():
        assert all(size >= 11 for size in page.locator(kind).evaluate_all(sizes)), kind
    page.evaluate(UNFOLD)
    assert page.locator(".cell_output .words pre, details.sd-dropdown table:not(.facts)").evaluate_all(TOO_WIDE) == []
    resize(page, DESKTOP)
    code = page.locator(".highlight pre").evaluate_all(
        TOO_WIDE.replace("node.offsetHeight", "!node.closest('.cell_output') && node.offsetHeight")
    )
    assert code == []


def test_at_least_twenty_chapters_have_notes():
    assert sum("<aside" in (SITE / path).read_text("utf-8") for path in CHAPTERS) >= 20


# --- what holds for every chapter as it opens ---------------------------------------------------------------------

CODE = """() => {
    const whole = document.head.appendChild(document.createElement('style'));
    whole.textContent = 'article * { content-visibility: visible !important; }';
    const folded = '.cell_output, details:not([open]), .toggle-hidden';
    const code = [...document.querySelectorAll('article .highlight')]
        .filter((node) => node.offsetHeight && !node.closest(folded))
        .reduce((sum, node) => sum + node.offsetHeight, 0);
    const share = code / document.querySelector('article').scrollHeight;
    whole.remove();
    return share;
}"""


@each_chapter
def test_chapter_has_its_map_its_terms_and_little_code(visited):
    page = visited.page
    there = page.get_by_role("navigation", name="Map of the book")
    assert there.bounding_box()["height"] <= 111
    assert there.locator(".chapter-map-wide [aria-current=page]").count() == 1
    links = there.locator(".chapter-map-wide a")
    addresses = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    reached = {f"chapters/{address}" if address != "#" else visited.path for address in addresses}
    assert (reached, len(addresses)) == (set(CHAPTERS), len(CHAPTERS))
    # Terms are linked once, and in running text only.
    terms = page.locator(LINKS["term"])
    addresses = terms.evaluate_all("links => links.map((link) => link.hash)")
    assert len(addresses) >= 4
    assert len(set(addresses)) == len(addresses)
    misplaced = "links => links.filter((link) => link.closest('h1, h2, h3, h4, pre, code, figcaption, table')).length"
    assert terms.evaluate_all(misplaced) == 0
    assert page.evaluate(CODE) < 1 / 3


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_what_scrolls_is_reached_by_keyboard(open_whole, size):
    page = open_whole(ONE, viewport=size)
    if size == PHONE:
        page.locator("pre.scrolls:visible").first.wait_for()
    unreached = page.locator("article :is(pre, div.math, table, figure)").evaluate_all(
        """nodes => nodes.filter((node) => node.offsetHeight && node.scrollWidth > node.clientWidth + 1
            && ['auto', 'scroll'].includes(getComputedStyle(node).overflowX) && node.tabIndex !== 0)
            .map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert unreached == []
    if size != PHONE:
        return
    box = page.locator("pre.scrolls:visible").first
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("node => node.scrollLeft > 0", arg=box.element_handle())


# --- the map and the cards ----------------------------------------------------------------------------------------


def test_map_folds_on_a_phone_and_leads_on(open_page):
    page = open_page(ONE, viewport=PHONE).page
    assert not page.locator(".chapter-map-wide").is_visible()
    fold = page.locator(".chapter-map-narrow")
    assert fold.bounding_box()["height"] < 60
    fold.locator("summary").click()
    link = fold.locator("a", has_text="encoder")
    assert link.bounding_box()["height"] >= 24
    link.click()
    page.wait_for_url("**/chapters/encoder.html")


CARD = "#card-over"
LINKS = {
    "term": 'article a.reference[href*="#term-"]',
    "equation": 'article a.reference[href^="#equation-"]',
    "citation": 'article a.reference[href*="bibliography.html#"]',
}


def test_card_opens_by_mouse_or_keys_and_stays_while_it_is_read(open_page):
    visit = open_page(ONE)
    page, card = visit.page, visit.page.locator(CARD)
    for selector in LINKS.values():
        link = page.locator(selector).first
        link.hover()
        card.wait_for()
        assert len(card.inner_text()) > 10
        assert "\\(" not in card.inner_text()
        assert link.get_attribute("aria-describedby") == "card-over"
        card.hover()
        visit.quiet()
        assert card.is_visible()
        page.mouse.move(2, 2)
        card.wait_for(state="detached")
        assert link.get_attribute("aria-describedby") is None
    page.keyboard.press("Tab")  # from here on what has the focus shows it
    for selector in LINKS.values():
        page.locator(selector).first.focus()
        card.wait_for()
        visit.quiet()
        assert card.is_visible()  # though a mouse rests where something else came under it
        page.keyboard.press("Escape")
        card.wait_for(state="detached")
        page.keyboard.press("Tab")
        assert card.count() <= 1


def test_finger_opens_the_card_and_then_follows(open_page):
    page = open_page(ONE, viewport=PHONE, has_touch=True, is_mobile=True).page
    link = page.locator(LINKS["term"]).first
    link.tap()
    card = page.locator(CARD)
    card.wait_for()
    box = card.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    link.tap()
    page.wait_for_url("**/glossary.html#term-*")


# --- the landing page and the index ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_landing_page_says_what_it_is_on_its_first_screen(open_page, size):
    page = open_page("index.html", viewport=size).page
    for part in (".lead", ".start a:has-text('Start reading')", ".live-figure"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + min(box["height"], 60) < size["height"], part
    pictures = page.locator(".picture-card")
    assert pictures.count() == pictures.locator("svg").count() == 3
    page.get_by_role("link", name="Start reading").click()
    page.wait_for_url("**/chapters/primer.html")
