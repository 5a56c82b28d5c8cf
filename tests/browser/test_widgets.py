"""What holds for every live figure: it can be worked without a mouse, reset, read aloud, and fits a phone."""

import importlib
import re
from pathlib import Path

import pytest

WIDGETS = Path(__file__).parents[2] / "widgets"
NAMES = sorted(file.stem for file in WIDGETS.glob("*.mjs") if re.search(r"export .*\bmount\b", file.read_text("utf-8")))

# Of each figure, controls with keys that change something: the figure's own tests name them.
TESTS = [
    importlib.import_module(f"tests.browser.{file.stem}") for file in Path(__file__).parent.glob("test_widget_*.py")
]
CHANGES = {name: changes for test in TESTS for name, changes in getattr(test, "CHANGES", {}).items()}


def test_every_figure_has_controls_to_try():
    assert set(NAMES) == set(CHANGES), "each figure has CHANGES in one of tests/browser/test_widget_*.py"


@pytest.mark.parametrize("name", NAMES)
def test_reset_undoes_every_change(shared_figures, name):
    figure = shared_figures(name)
    start, words = figure.settled(), figure.summary
    for label, keys in CHANGES[name]:
        figure.press(figure.control(label), keys)
        assert figure.state != start
        figure.reset()
        assert figure.settled() == start
    assert figure.summary == words


@pytest.mark.smoke
@pytest.mark.parametrize("name", NAMES)
def test_summary_says_what_changed(shared_figures, name):
    figure = shared_figures(name)
    before = figure.summary
    for label, keys in CHANGES[name]:
        figure.press(figure.control(label), keys)
    assert before != figure.summary != ""
    assert figure.root.locator("[aria-live=polite]").count() == 1


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", NAMES)
def test_figure_fits_a_phone(open_figure, name):
    figure = open_figure(name, viewport={"width": 360, "height": 800})
    if figure.root.locator(".lf-start").count():
        figure.start()
    for label, keys in [(None, None), *CHANGES[name]]:
        if label is not None:
            figure.press(figure.control(label), keys)
            figure.settled()
        outside = figure.root.evaluate("""root => {
            const edge = root.getBoundingClientRect().right;
            const isCut = (node) => node.matches('.lf-table') && node.scrollWidth > node.clientWidth;
            const all = [...root.querySelectorAll('*')];
            const isOut = (node) => node.getBoundingClientRect().right > edge + 1 || isCut(node);
            return all.filter(isOut).map((node) => `${node.tagName} ${node.textContent.slice(0, 40)}`);
        }""")
        assert outside == [], f"after {label}"
    small = figure.root.evaluate("""root => {
        const isSmall = (node) => node.firstChild?.nodeType === 3 && parseFloat(getComputedStyle(node).fontSize) < 11;
        return [...root.querySelectorAll('*')].filter(isSmall).map((node) => node.textContent);
    }""")
    assert small == []


def test_figures_keep_still_for_those_who_ask(open_figure):
    figure = open_figure("attention", reduced_motion="reduce")
    assert (
        figure.root.locator(".lf-gauge i").first.evaluate("node => getComputedStyle(node).transitionProperty") == "none"
    )
