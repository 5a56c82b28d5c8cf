"""What makes the pages good to read: type, code, the map, the cards, the landing page, a phone."""

import os
import re
from pathlib import Path

import pytest

# As in conftest.py: another build can be named.
SITE = Path(os.environ.get("SITE", Path(__file__).parents[2] / "_build" / "html"))
PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1400, "height": 900}
DESKTOP = {"width": 1280, "height": 800}
CHAPTERS = sorted(f"chapters/{file.name}" for file in (SITE / "chapters").glob("[0-9]*.html"))
each_chapter = pytest.mark.parametrize("path", CHAPTERS or ["chapters/none.html"], scope="session")
ONE = CHAPTERS[2] if len(CHAPTERS) > 2 else "chapters/none.html"


@pytest.fixture
def open_whole(open_page):
    """Open a page with all its sections laid out: otherwise each is when it comes into sight."""

    def open_one(path: str, **options):
        page = open_page(path, **options).page
        page.add_style_tag(content="article * { content-visibility: visible !important; }")
        page.evaluate("dispatchEvent(new Event('resize'))")
        return page

    return open_one


# --- the head ----------------------------------------------------------------------------------------------------


def tag(page: str, name: str) -> str:
    """What a page says of itself under a name."""
    found = re.search(rf'<meta (?:name|property)="{name}" content="([^"]*)"', (SITE / page).read_text("utf-8"))
    assert found, f"{page} says nothing of {name}"
    return found[1]


def test_shared_links_have_a_picture_and_a_description(path):
    if path not in ("404.html", "search.html", "genindex.html"):
        folder, name = tag(path, "og:image").split("/")[-2:]
        size = [int(tag(path, f"og:image:{side}")).to_bytes(4, "big") for side in ("width", "height")]
        assert (SITE / folder / name).read_bytes()[16:24] == b"".join(size)
        assert len(tag(path, "og:image:alt")) > 50
        assert len(tag(path, "og:description")) > 50
        assert "\\" not in tag(path, "description")


@pytest.mark.parametrize(
    ("path", "picture"),
    [
        ("index.html", "_static/card.png"),
        ("chapters/13_relations.html", "_images/kernel.png"),
        ("chapters/02_self_attention.html", "_images/attention.png"),
    ],
)
def test_a_shared_chapter_shows_its_first_whole_figure(path, picture):
    assert tag(path, "og:image").endswith(f"/{picture}")


def test_title_of_the_landing_page_names_the_book_once():
    title = re.search(r"<title>(.*?)</title>", (SITE / "index.html").read_text("utf-8"), re.DOTALL)
    assert title[1].count("Plainformer") == 1


# --- type and code -----------------------------------------------------------------------------------------------

# Letters per line of each paragraph of at least three lines.
MEASURE = """() => [...document.querySelectorAll('section > p')].filter((p) => !p.querySelector('.math')).map((p) => {
    const lines = Math.round(p.offsetHeight / parseFloat(getComputedStyle(p).lineHeight));
    return [lines, p.textContent.length / lines];
}).filter(([lines]) => lines > 2).map(([, letters]) => letters)"""


def test_letters_are_the_book_s_own_and_lines_have_a_measure(open_whole):
    page = open_whole(ONE)
    assert page.evaluate("document.fonts.check('16px \"Plainformer Sans\"')")
    assert page.evaluate("document.fonts.check('14px \"Plainformer Mono\"')")
    letters = sorted(page.evaluate(MEASURE))
    assert 58 < letters[len(letters) // 2] < 76


def test_fonts_move_nothing_when_they_come(browser, site):
    """Each font has a fallback of its own width. Nobody has scrolled yet: then sections would be laid out, too."""
    page = browser.new_page(viewport=WIDE)
    page.goto(site + ONE)
    page.wait_for_load_state("networkidle")
    shift = page.evaluate(
        "() => new Promise((found) => new PerformanceObserver((list) => found(list.getEntries().map((e) => e.value)))"
        ".observe({type: 'layout-shift', buffered: true}) || setTimeout(() => found([]), 500))"
    )
    page.close()
    assert sum(shift) < 0.1


def test_no_root_has_a_hole_behind_it(open_whole):
    """How far, in em, each root goes on behind what stands under it."""
    page = open_whole(ONE)
    page.evaluate("document.fonts.load('16px \"STIX Two Math\"')")
    holes = page.locator("msqrt:visible").evaluate_all(
        "roots => roots.map((root) => [root, root.lastElementChild].map((node) => node.getBoundingClientRect().right)"
        ".reduce((whole, inside) => whole - inside) / parseFloat(getComputedStyle(root).fontSize))"
    )
    assert len(holes) > 5
    assert max(holes) < 0.1


def test_code_is_never_wrapped(visited):
    wrapped = visited.page.locator(".highlight pre").evaluate_all(
        "nodes => nodes.filter((node) => !node.closest('.words') && getComputedStyle(node).whiteSpace !== 'pre').length"
    )
    assert wrapped == 0


# Boxes of a kind that are seen and wider than their place.
TOO_WIDE = """nodes => nodes.filter((node) => node.offsetHeight && node.scrollWidth > node.clientWidth + 1)
    .map((node) => node.textContent.trim().slice(0, 80))"""


@each_chapter
def test_no_code_scrolls_on_a_desktop_and_no_sentence_on_a_phone(open_whole, path):
    page = open_whole(path, viewport=DESKTOP)
    page.locator("details").evaluate_all("folds => folds.forEach((fold) => (fold.open = true))")
    page.locator(".toggle-hidden").evaluate_all(
        "folds => folds.forEach((fold) => fold.classList.remove('toggle-hidden'))"
    )
    code = page.locator(".highlight pre")
    assert (
        code.evaluate_all(TOO_WIDE.replace("node.offsetHeight", "!node.closest('.cell_output') && node.offsetHeight"))
        == []
    )
    page.set_viewport_size(PHONE)
    assert page.locator(".cell_output .words pre").evaluate_all(TOO_WIDE) == []


# --- notes in the margin -----------------------------------------------------------------------------------------

NOTED = [path for path in CHAPTERS if "<aside" in (SITE / path).read_text("utf-8")]
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


def test_at_least_twenty_chapters_have_notes():
    assert len(NOTED) >= 20


@pytest.mark.parametrize("path", NOTED or ["chapters/none.html"])
def test_note_stands_beside_its_paragraph_and_in_the_flow_where_there_is_no_room(open_whole, path):
    page = open_whole(path, viewport={"width": 1920, "height": 1080})
    notes = page.locator("article aside.margin")
    assert notes.evaluate_all(STRAY) == []
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        assert notes.evaluate_all(OUT_OF_THE_FLOW) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


# --- the first screen --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@each_chapter
def test_live_figure_begins_on_the_first_screen(open_page, path, size):
    """Below a question, and above the lines that fold the goals and the letters away."""
    page = open_page(path, viewport=size).page
    figure = page.locator(".live-figure").first
    assert figure.evaluate("node => node.getBoundingClientRect().top") < size["height"]
    folds = page.locator("article .sd-dropdown")
    assert [folds.nth(n).evaluate("node => node.open") for n in range(2)] == [False, False]
    assert all(folds.nth(n).bounding_box()["height"] < 90 for n in range(2))


@each_chapter
def test_code_takes_at_most_a_third_of_a_page(visited):
    shown = "node.offsetHeight && !node.closest('.cell_output, details:not([open]), .toggle-hidden')"
    share = visited.page.evaluate(
        f"""() => {{
            const whole = document.head.appendChild(document.createElement('style'));
            whole.textContent = 'article * {{ content-visibility: visible !important; }}';
            const code = [...document.querySelectorAll('article .highlight')].filter((node) => {shown})
                .reduce((sum, node) => sum + node.offsetHeight, 0);
            const share = code / document.querySelector('article').scrollHeight;
            whole.remove();
            return share;
        }}"""
    )
    assert share < 1 / 3


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
    page.wait_for_timeout(400)
    assert box.evaluate("node => node.scrollLeft") > 0


# --- the map -----------------------------------------------------------------------------------------------------


@each_chapter
def test_map_marks_the_chapter_and_leads_to_the_others(visited):
    there = visited.page.get_by_role("navigation", name="Map of the book")
    assert there.bounding_box()["height"] <= 111
    here = there.locator(".chapter-map-wide [aria-current=page]")
    assert here.count() == 1
    links = there.locator(".chapter-map-wide a")
    addresses = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert sorted(f"chapters/{address}" if address != "#" else visited.path for address in addresses) == CHAPTERS


def test_map_folds_on_a_phone_and_leads_on(open_page):
    page = open_page(ONE, viewport=PHONE).page
    assert not page.locator(".chapter-map-wide").is_visible()
    fold = page.locator(".chapter-map-narrow")
    assert fold.bounding_box()["height"] < 60
    fold.locator("summary").click()
    link = fold.locator("a", has_text="encoder")
    assert link.bounding_box()["height"] >= 24
    link.click()
    page.wait_for_url("**/chapters/09_encoder.html")


# --- cards -------------------------------------------------------------------------------------------------------

CARD = "#card-over"
LINKS = {
    "term": 'article a.reference[href*="#term-"]',
    "equation": 'article a.reference[href^="#equation-"]',
    "citation": 'article a.reference[href*="bibliography.html#"]',
}


@each_chapter
def test_terms_are_linked_once_and_in_running_text_only(visited):
    links = visited.page.locator(LINKS["term"])
    addresses = links.evaluate_all("links => links.map((link) => link.hash)")
    assert len(addresses) >= 4
    assert len(set(addresses)) == len(addresses)
    misplaced = "links => links.filter((link) => link.closest('h1, h2, h3, h4, pre, code, figcaption, table')).length"
    assert links.evaluate_all(misplaced) == 0


@pytest.mark.parametrize("kind", LINKS)
def test_card_opens_under_the_mouse_and_stays_while_it_is_read(open_page, kind):
    page = open_page(ONE).page
    link = page.locator(LINKS[kind]).first
    link.hover()
    card = page.locator(CARD)
    card.wait_for()
    assert len(card.inner_text()) > 10
    assert "\\(" not in card.inner_text()
    assert link.get_attribute("aria-describedby") == "card-over"
    card.hover()
    page.wait_for_timeout(500)
    assert card.is_visible()
    page.mouse.move(2, 2)
    card.wait_for(state="detached")
    assert link.get_attribute("aria-describedby") is None


@pytest.mark.parametrize("kind", LINKS)
def test_card_opens_from_the_keyboard_and_escape_closes_it(open_page, kind):
    page = open_page(ONE).page
    page.keyboard.press("Tab")  # from here on what has the focus shows it
    page.locator(LINKS[kind]).first.focus()
    card = page.locator(CARD)
    card.wait_for()
    page.keyboard.press("Escape")
    card.wait_for(state="detached")
    page.keyboard.press("Tab")
    assert page.locator(CARD).count() <= 1


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


# --- a phone, and the landing page -------------------------------------------------------------------------------


@each_chapter
def test_tables_of_letters_fit_a_phone(on_phone):
    on_phone.locator("details.sd-dropdown").evaluate_all("nodes => nodes.forEach((node) => { node.open = true; })")
    wide = on_phone.locator("details.sd-dropdown table").evaluate_all(
        "tables => tables.filter((table) => table.scrollWidth > table.clientWidth + 1).length"
    )
    assert wide == 0


@each_chapter
def test_letters_in_pictures_are_legible_on_a_phone(on_phone):
    """Plots have letters of eleven points, schematics of thirteen pixels: none of them ends below eleven pixels."""
    pictures = on_phone.locator("article .cell_output img")
    pictures.evaluate_all("images => images.forEach((one) => { one.loading = 'eager'; })")
    on_phone.wait_for_load_state("networkidle")
    scales = "images => images.map((one) => 11 * 96 / 72 * one.width / one.naturalWidth)"
    plots = on_phone.locator("article .cell_output img:not(.photograph)").evaluate_all(scales)
    assert all(size >= 11 for size in plots), plots
    drawn = on_phone.locator("figure.drawing svg").evaluate_all(
        "all => all.map((one) => 13 * one.getBoundingClientRect().width / one.viewBox.baseVal.width)"
    )
    assert all(size >= 11 for size in drawn), drawn


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_landing_page_says_what_it_is_on_its_first_screen(open_page, size):
    page = open_page("index.html", viewport=size).page
    for part in (".lead", ".start a:has-text('Start reading')", ".live-figure"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + min(box["height"], 60) < size["height"], part
    pictures = page.locator(".picture-card")
    assert pictures.count() == pictures.locator("svg").count() == 3
    page.get_by_role("link", name="Start reading").click()
    page.wait_for_url("**/chapters/01_tokens.html")


def test_index_shows_the_equations(open_page):
    page = open_page("appendix/equations.html").page
    rows = page.locator("table.equation-index tbody tr")
    assert rows.count() == rows.locator("div.math").count() > 50
