"""What holds for every live figure: it starts and answers, is reset and read aloud, fits a phone, is worked by keys."""

import importlib
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.browser.conftest import AT_REST, PHONE, POLLING, Figure, figures_of, first_pages
from tests.browser.hostile import type_each

WIDGETS = Path(__file__).parents[2] / "widgets"
NAMES = sorted(file.stem for file in WIDGETS.glob("*.mjs") if re.search(r"export .*\bmount\b", file.read_text("utf-8")))
FIRST = first_pages()
SHOWING = sorted(set(FIRST.values())) or ["index.html"]

# Of each figure, controls with keys that change something: the figure's own tests name them.
TESTS = [
    importlib.import_module(f"tests.browser.{file.stem}") for file in Path(__file__).parent.glob("test_widget_*.py")
]
CHANGES = {name: changes for test in TESTS for name, changes in getattr(test, "CHANGES", {}).items()}


@pytest.mark.smoke
def test_every_figure_has_a_page_and_controls_to_try():
    assert set(NAMES) == set(CHANGES), "each figure has CHANGES in one of tests/browser/test_widget_*.py"
    assert set(NAMES) <= set(FIRST)


@pytest.mark.smoke
def test_page_opens_and_its_figures_start_answer_and_are_reset(open_page, path):
    """Nothing goes wrong, and no other host is asked. Each figure is tried on the first page that shows it."""
    visit = open_page(path)
    assert visit.errors == visit.foreign == []
    for name in figures_of(path):
        if FIRST[name] == path:
            answers(Figure(visit, name).laid_out().start())
    assert visit.errors == visit.foreign == []


def answers(figure):
    """Its controls change the state and the sentence that is read aloud, and Reset undoes all of it."""
    start, words = figure.settled(), figure.summary
    for label, keys in CHANGES[figure.name]:
        figure.press(figure.control(label), keys)
        assert figure.state != start, label
    spoken = figure.root.locator("[aria-live=polite]")
    assert spoken.count() == 1
    figure.page.wait_for_function(
        "([node, words]) => ![words, ''].includes(node.innerText)",
        arg=[spoken.element_handle(), words],
        polling=POLLING,
    )
    figure.reset()
    assert figure.settled() == start
    assert figure.summary == words


# What is beyond the edge of a figure, or cut off by its own box; and what has letters of less than 11 pixels.
OUTSIDE = """root => {
    const edge = root.getBoundingClientRect().right;
    const isCut = (node) => node.matches('.lf-table') && node.scrollWidth > node.clientWidth;
    const isOut = (node) => node.getBoundingClientRect().right > edge + 1 || isCut(node);
    return [...root.querySelectorAll('*')].filter(isOut)
        .map((node) => `${node.tagName} ${node.textContent.slice(0, 40)}`);
}"""
# Scripts in a formula are smaller than its letters, here as in the text: a formula is as large as its letters are.
SMALL = """root => {
    const sizeOf = (node) => parseFloat(getComputedStyle(node.closest('math') ?? node).fontSize);
    const isSmall = (node) => node.firstChild?.nodeType === 3 && sizeOf(node) < 11;
    return [...root.querySelectorAll('*')].filter(isSmall).map((node) => node.textContent);
}"""


@pytest.mark.parametrize("path", SHOWING)
def test_figures_fit_a_phone(open_page, path):
    visit = open_page(path, viewport={"width": 360, "height": 800})
    for name in figures_of(path):
        if FIRST[name] != path:
            continue
        figure = Figure(visit, name).laid_out().start()
        for label, keys in [(None, None), *CHANGES[name]]:
            if label is not None:
                figure.press(figure.control(label), keys)
                figure.settled()
            assert figure.root.evaluate(OUTSIDE) == [], f"{name} after {label}"
        assert figure.root.evaluate(SMALL) == [], name


@pytest.mark.parametrize("name", ["attention", "machine", "positions", "patches"])
def test_tab_reaches_every_control(shared_figures, name):
    """Radio buttons of one name are one stop, as everywhere."""
    figure = shared_figures(name)
    stops = figure.root.evaluate("""root => {
        const isShown = (node) => node.offsetParent !== null || node instanceof SVGElement;
        const isStop = (node) => node.tabIndex >= 0 && isShown(node); // of a row of letters, one
        const all = [...root.querySelectorAll('input, button, select, [tabindex="0"]')].filter(isStop);
        all.forEach((node, i) => { node.dataset.stop = node.type === 'radio' ? node.name : i; });
        return [...new Set(all.map((node) => node.dataset.stop))];
    }""")
    seen = set()
    figure.root.locator("[data-stop]").first.focus()
    for _ in range(len(stops) + 1):
        seen.add(figure.page.evaluate("document.activeElement.dataset.stop"))
        figure.page.keyboard.press("Tab")
    assert set(stops) <= seen


def test_figures_keep_still_for_those_who_ask(open_figure):
    figure = open_figure("attention", reduced_motion="reduce")
    assert (
        figure.root.locator(".lf-gauge i").first.evaluate("node => getComputedStyle(node).transitionProperty") == "none"
    )


# --- a finger ----------------------------------------------------------------------------------------------------


def swipe(figure, x: float, y: float, down: int):
    """Put a finger on the screen, move it and lift it, and wait until the page has come to rest."""
    devtools = figure.page.context.new_cdp_session(figure.page)
    devtools.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 11):
        place = {"x": x, "y": y + down * step / 10}
        devtools.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [place]})
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    figure.page.evaluate(AT_REST)


def in_the_middle(figure, place: str) -> dict:
    """The box of a part of a figure, once the page has been scrolled to it."""
    node = figure.root.locator(place).first
    node.evaluate("node => node.scrollIntoView({ block: 'center' })")
    figure.page.evaluate(AT_REST)
    return node.bounding_box()


@pytest.mark.parametrize(("name", "place"), [("costs", ".lf-slider input"), ("attention", "svg.lf-plane")])
def test_a_swipe_that_begins_on_a_control_scrolls_the_page(open_figure, name, place):
    figure = open_figure(name, viewport=PHONE, has_touch=True)
    before, box = figure.state, in_the_middle(figure, place)
    top = figure.page.evaluate("scrollY")
    # Beside the points of the plane, and away from the knob of the slider.
    swipe(figure, box["x"] + 0.93 * box["width"], box["y"] + 0.5 * box["height"], -200)
    assert figure.page.evaluate("scrollY") > top + 80
    assert figure.state == before


@pytest.mark.parametrize(
    ("name", "tapped", "state"),
    [
        ("decoder_heads", ["block 3, head 1"], {"layer": 2, "head": 0}),
        ("heads", ["layer 3, head 1"], {"layer": 2, "head": 0}),
        ("masking", ["Hide letter 10"], {"asked": 9}),
        ("positions", ["rotary"], {"scheme": "rotary"}),
    ],
)
def test_figure_is_worked_by_a_finger(open_figure, name, tapped, state):
    """Among others, letters that are pressed are large enough."""
    figure = open_figure(name, has_touch=True, is_mobile=True, viewport=PHONE).start()
    for label in tapped:
        figure.control(label).tap()
    found = figure.settled()
    assert {key: found[key] for key in state} == state
    boxes = figure.root.locator("button.lf-letter").evaluate_all("all => all.map((n) => n.getBoundingClientRect())")
    assert all(min(box["width"], box["height"]) >= 28 for box in boxes)


# --- fields ------------------------------------------------------------------------------------------------------

FIELDS = {
    "bpe": "Text",
    "chemist": "Reaction",
    "heads": "Your text",
    "lens": "Text",
    "machine": "Your text",
    "masking": "Name",
    "positions": "Your sentence",
    "sampling": "Prompt",
    "stage": "Your text",
    "surprise": "Text",
    "translation": "Date",
}


@pytest.mark.parametrize("name", FIELDS)
def test_field_takes_any_text_and_emptied_keeps_the_last_picture(shared_figures, name):
    figure = shared_figures(name)
    figure.settled()
    before = figure.root.evaluate("node => node.getBoundingClientRect().height")
    field = figure.root.get_by_role("textbox", name=FIELDS[name], exact=True)
    field.fill("")
    assert figure.summary.endswith(".")
    if name not in ("bpe", "chemist", "positions"):  # which draw what a text of no letters gives
        assert abs(figure.root.evaluate("node => node.getBoundingClientRect().height") - before) < 80
        assert figure.root.locator(".lf-stale").count()
    type_each(field)
    assert figure.page.evaluate("window.alarm") is None
    figure.reset()
    assert figure.settled()
    assert figure.visit.errors == []


# --- what is written in figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["costs", "kernel", "descent", "network"])
def test_words_in_plots_are_large_enough(shared_figures, name):
    sizes = (
        shared_figures(name)
        .root.locator("svg text")
        .evaluate_all(
            "nodes => nodes.filter((node) => node.checkVisibility())"
            ".map((node) => parseFloat(getComputedStyle(node).fontSize) * node.getScreenCTM().a || 99)"
        )
    )
    assert min(sizes) >= 11


def test_letters_at_a_heat_map_stand_on_one_level(shared_figures):
    figure = shared_figures("decoder_heads")
    figure.root.get_by_label("Your text").fill("The names of the modules in the list of the names of the modules")
    figure.settled()
    for side, edge in [("top", "bottom"), ("left", "right")]:
        places = figure.root.locator(f".lf-map-{side} span").evaluate_all(
            "(nodes, edge) => nodes.map((node) => [node.style[edge], node.getBoundingClientRect()])"
            ".map(([level, box]) => [level, box.x, box.y])",
            edge,
        )
        assert len({level for level, *_ in places}) == 1
        along = [place[1 if side == "top" else 2] for place in places]
        assert min(b - a for a, b in pairwise(along)) > 7


LONGEST_NOTE = 45  # words: what says more explains several marks at once, far from most of them
NOTED = {"lens": ".lf-lens", "translation": ".lf-bridge", "masking": ".lf-arched", "patches": ".lf-maps"}


@pytest.mark.parametrize("name", [*NOTED, "surprise", "inside"])
def test_notes_are_short_and_stand_beside_their_mark(shared_figures, name):
    """At most 40 pixels lie between what is marked and the words on it."""
    root = shared_figures(name).root
    notes = root.locator(".lf-note")
    assert [words for words in notes.all_inner_texts() if len(words.split()) > LONGEST_NOTE] == []
    if name in NOTED:
        thing = root.locator(NOTED[name]).first.bounding_box()
        ends = [box["y"] + box["height"] for note in notes.all() if (box := note.bounding_box())]
        assert any(thing["y"] - 40 < end <= thing["y"] + 1 for end in ends)
