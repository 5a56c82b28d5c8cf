"""The live figure of masking: what it shows of a hidden letter is what the stored model gives."""

import json
from pathlib import Path

import numpy as np
import pytest

NAMES = json.loads((Path(__file__).parents[2] / "widgets" / "masking.json").read_text("utf-8"))["names"]
SHOWN = 7


def wanted_rows(place, right):
    """The likeliest letters, however seen, and the right one, ordered as seen from both sides; then all others."""
    most = np.maximum(place["both"], place["left"])
    chosen = [*np.argsort(-most, kind="stable")[:SHOWN].tolist(), place["letters"].index(right)]
    order = sorted(dict.fromkeys(chosen), key=lambda i: -place["both"][i])
    shown = [place["letters"][i] for i in order]
    numbers = [[place[kind][i] for i in order] for kind in ("both", "left")]
    return shown, [[*row, max(0, 1 - sum(row))] for row in numbers]


def check_masking(figure):
    state = figure.state
    name = NAMES[state["name"]]
    right = name["text"][state["place"]]
    shown, numbers = wanted_rows(name["places"][state["place"]], right)
    assert (state["text"], state["right"], state["shown"]) == (name["text"], right, shown)
    for kind, row in zip(("both", "left"), numbers, strict=True):
        np.testing.assert_allclose(state[kind], row, atol=1e-9)
    rows = figure.root.locator("tbody tr:visible")
    heads = [head.replace("␣", " ") for head in rows.locator("th").all_inner_texts()]
    assert heads == [*shown, "others"]
    for column, row in zip((2, 3), numbers, strict=True):
        assert rows.locator(f"td:nth-child({column})").all_inner_texts() == [f"{value:.3f}" for value in row]
    widths = rows.locator(".lf-bar").evaluate_all(
        "bars => bars.map((bar) => [bar.matches('.lf-removed'), bar.style.width])"
    )
    assert [removed for removed, _ in widths] == [False, True] * len(heads)
    lengths = np.array([float(width.removesuffix("%")) for _, width in widths]).reshape(-1, 2).T
    full = float(figure.root.locator("thead th").last.inner_text().removeprefix("a full bar is "))
    np.testing.assert_allclose(lengths / 100 * full, numbers, atol=1e-3)
    assert full >= np.max(numbers)
    letters = [letter.replace("␣", " ") for letter in figure.root.locator(".lf-letter").all_inner_texts()]
    assert "".join(letters) == name["text"][: state["place"]] + "□" + name["text"][state["place"] + 1 :]
    said = f"Letter {state['place'] + 1} of “{name['text']}” is “{right.replace(' ', '␣')}”: it has "
    at = shown.index(right)
    assert (
        figure.summary == f"{said}{numbers[0][at]:.3f} seen from both sides, {numbers[1][at]:.3f} from the left alone."
    )


@pytest.mark.parametrize("name", range(len(NAMES)), ids=[name["text"] for name in NAMES])
def test_masking_shows_what_the_stored_model_gives_for_every_letter(shared_figures, name):
    figure = shared_figures("masking")
    figure.root.get_by_role("radio").nth(name).check()
    slider = figure.control("Hidden letter")
    for place in range(len(NAMES[name]["text"])):
        assert figure.state["place"] == place
        check_masking(figure)
        figure.press(slider, "ArrowRight")
    assert figure.state["place"] == len(NAMES[name]["text"]) - 1  # the last one


def test_masking_hides_the_letter_that_is_clicked(shared_figures):
    figure = shared_figures("masking")
    letters = figure.root.locator(".lf-letter")
    letters.nth(4).click()
    assert figure.state["place"] == 4
    check_masking(figure)
    figure.press(letters.nth(2), "Enter")
    assert figure.state["place"] == 2
    assert letters.nth(2).evaluate("node => node === document.activeElement")
    check_masking(figure)
    unseen = letters.evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).borderStyle)")
    assert unseen == ["solid"] * 3 + ["dashed"] * (len(unseen) - 3)


def test_masking_begins_anew_with_another_name(shared_figures):
    figure = shared_figures("masking")
    figure.press(figure.control("Hidden letter"), "End")
    assert figure.state["place"] == len(NAMES[0]["text"]) - 1
    figure.root.get_by_role("radio").nth(1).check()
    assert (figure.state["name"], figure.state["place"]) == (1, 0)
