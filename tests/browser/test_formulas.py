"""Formulas inside live figures are MathML, as those of the pages are, and the site's font has their letters."""

import re
import unicodedata

import pytest
from fontTools.ttLib import TTFont

from tests.browser.conftest import SITE

# What stands in a figure's words beside its formulas, and the leaves of these.
SHOWN = """(root) => {
    const words = root.cloneNode(true);
    words.querySelectorAll('math, svg, .lf-code, .lf-shape').forEach((node) => node.remove());
    const leaves = [...root.querySelectorAll('math :is(mi, mn, mo)')];
    return [words.textContent, leaves.map((leaf) => [leaf.localName, leaf.textContent]),
        [...root.querySelectorAll('math')].map((math) => math.getAttribute('alttext'))];
}"""
TYPED = re.compile(r"[√ᵀ]|(?<![\w/])\w_\w|[_^]\{")  # as formulas are typed


def glyph(tag: str, text: str) -> set[str]:
    """The characters that a leaf is drawn with: a letter alone leans, which is another character of the font."""
    if tag != "mi" or len(text) > 1 or text == "…" or not text.isascii():
        return set(text)
    case = "CAPITAL" if text.isupper() else "SMALL"
    return {"ℎ" if text == "h" else unicodedata.lookup(f"MATHEMATICAL ITALIC {case} {text.upper()}")}


@pytest.fixture(scope="module")
def letters() -> set[str]:
    return set(map(chr, TTFont(SITE / "_static" / "math.woff2").getBestCmap()))


def check(figure, letters, least: int):
    words, leaves, spoken = figure.root.evaluate(SHOWN)
    assert TYPED.findall(words) == []
    assert len(spoken) >= least
    assert all(spoken)
    assert set().union(*(glyph(*leaf) for leaf in leaves)) <= letters


@pytest.mark.parametrize(("name", "least"), [("notation", 10), ("attention", 1), ("recall", 2), ("heads", 1)])
def test_formulas_of_a_figure_are_typeset(shared_figures, letters, name, least):
    check(shared_figures(name), letters, least)


def test_each_rule_of_the_machine_is_typeset(shared_figures, letters):
    figure = shared_figures("machine")
    for box in figure.root.locator("[data-box]").all():
        box.click()
        check(figure, letters, 1)


def test_what_cannot_be_typeset_is_said(shared_figures):
    """A label and the value of a slider are read out as plain text, roots included."""
    figure = shared_figures("attention")
    assert figure.root.get_by_role("slider").first.get_attribute("aria-valuetext") == "0.71 = 1/√d_k"
    recall = shared_figures("recall")
    assert recall.root.get_by_role("checkbox", name="scores divided by √d_k").count() == 1


def test_a_matrix_stands_in_brackets(shared_figures):
    tables = shared_figures("notation").root.locator("mtable")
    assert [tables.nth(n).locator("mtd").all_text_contents() for n in range(2)] == [
        ["−1", "1", "1", "0"],
        ["1", "0", "1", "1"],
    ]
