"""What every live figure owes its reader: a swipe scrolls, an emptied field moves nothing, and words can be read."""

from itertools import pairwise

import pytest

from tests.browser.conftest import PHONE

EMPTIED = [("sampling", "Prompt"), ("masking", "Name"), ("translation", "Date"), ("lens", "Text"), ("surprise", "Text")]
HEIGHT = "node => node.getBoundingClientRect().height"


def swipe(figure, x: float, y: float, down: int):
    """Put a finger on the screen, move it and lift it, and wait until the page has come to rest."""
    devtools = figure.page.context.new_cdp_session(figure.page)
    devtools.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 11):
        place = {"x": x, "y": y + down * step / 10}
        devtools.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [place]})
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    figure.page.wait_for_timeout(400)


@pytest.mark.parametrize(("name", "place"), [("costs", ".lf-slider input"), ("attention", "svg.lf-plane")])
def test_a_swipe_that_begins_on_a_control_scrolls_the_page(open_figure, name, place):
    figure = open_figure(name, viewport=PHONE, has_touch=True)
    before, node = figure.state, figure.root.locator(place).first
    node.evaluate("node => node.scrollIntoView({ block: 'center' })")
    figure.page.wait_for_timeout(300)
    box, top = node.bounding_box(), figure.page.evaluate("scrollY")
    # Beside the points of the plane, and away from the knob of the slider.
    swipe(figure, box["x"] + 0.93 * box["width"], box["y"] + 0.5 * box["height"], -200)
    assert figure.page.evaluate("scrollY") > top + 80
    assert figure.state == before


def test_a_finger_still_moves_a_point(open_figure):
    figure = open_figure("attention", viewport=PHONE, has_touch=True)
    dot = figure.root.locator(".lf-query circle[r='5']")
    dot.evaluate("node => node.scrollIntoView({ block: 'center' })")
    figure.page.wait_for_timeout(300)
    box, before, top = dot.bounding_box(), figure.state["query"], figure.page.evaluate("scrollY")
    swipe(figure, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 40)
    assert figure.state["query"][1] < before[1] - 0.2
    assert figure.page.evaluate("scrollY") == top


@pytest.mark.parametrize(("name", "label"), EMPTIED)
def test_an_emptied_field_keeps_the_last_picture(shared_figures, name, label):
    figure = shared_figures(name)
    figure.settled()
    before = figure.root.evaluate(HEIGHT)
    figure.root.get_by_role("textbox", name=label).fill("")
    assert figure.summary.endswith(".")
    assert abs(figure.root.evaluate(HEIGHT) - before) < 80  # but for lines of the sentence
    assert figure.root.locator(".lf-stale").count()


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


@pytest.mark.parametrize("name", ["lens", "translation", "masking", "surprise", "patches", "inside"])
def test_notes_are_short_enough_to_stand_beside_their_mark(shared_figures, name):
    notes = shared_figures(name).root.locator(".lf-note").all_inner_texts()
    assert [words for words in notes if len(words.split()) > LONGEST_NOTE] == []


@pytest.mark.parametrize(
    ("name", "mark", "words"),
    [
        ("lens", ".lf-lens", "Below each letter"),
        ("translation", ".lf-bridge", "What is read: number"),
        ("masking", ".lf-arched", "Above each letter"),
        ("patches", ".lf-maps", "A row for each block"),
    ],
)
def test_a_note_stands_beside_its_mark(shared_figures, name, mark, words):
    """At most 40 pixels lie between what is marked and the words on it."""
    root = shared_figures(name).root
    (thing, note) = (root.locator(mark).first.bounding_box(), root.locator(".lf-note", has_text=words).bounding_box())
    assert thing["y"] - 40 < note["y"] + note["height"] <= thing["y"] + 1
