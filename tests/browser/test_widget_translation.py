"""The live figure of cross-attention: the weights that it shows are those of the stored model."""

import json
from pathlib import Path

import numpy as np
import pytest

NUMBERS = json.loads((Path(__file__).parents[2] / "widgets" / "translation.json").read_text("utf-8"))
DATES, HEADS = NUMBERS["dates"], NUMBERS["heads"]


def shown(text):
    return text.replace(" ", "␣")


def check_translation(figure):
    state = figure.state
    date, step = DATES[state["date"]], state["step"]
    assert (state["text"], state["written"]) == (date["text"], date["written"])
    weights = np.array(date["weights"])[:, step] / 1000
    expected = weights.mean(axis=0) if state["head"] == 0 else weights[state["head"] - 1]
    np.testing.assert_allclose(state["weights"], expected, atol=1e-9)
    boxes = figure.root.locator(".lf-read")
    assert boxes.locator("b").all_inner_texts() == [shown(letter) for letter in date["text"]]
    hundredths = [int(text or 0) for text in boxes.locator("span").all_inner_texts()]
    np.testing.assert_allclose(hundredths, 100 * expected, atol=0.501)
    shares = boxes.evaluate_all("boxes => boxes.map((box) => parseFloat(box.style.getPropertyValue('--share')))")
    np.testing.assert_allclose(shares, 100 * expected, atol=0.501)
    most = int(np.argmax(expected))
    assert state["most"] == most
    assert boxes.evaluate_all("boxes => boxes.findIndex((box) => box.matches('.lf-most'))") == most
    written = figure.root.locator(".lf-letter")
    assert "".join(written.all_inner_texts()) == date["written"]
    assert written.evaluate_all("nodes => nodes.findIndex((node) => node.matches('.lf-gone'))") == step
    unseen = written.evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).borderStyle)")
    assert unseen == ["solid"] * (step + 1) + ["dashed"] * (len(date["written"]) - step - 1)
    rows = figure.root.locator("tbody tr")
    numbers = date["next"][step]
    assert rows.locator("th").all_inner_texts() == [shown(letter) for letter in numbers["letters"]]
    assert rows.locator("td:nth-child(2)").all_inner_texts() == [f"{value:.3f}" for value in numbers["probabilities"]]
    who = "in the mean of all heads" if state["head"] == 0 else f"in {HEADS[state['head'] - 1]}"
    before, after = figure.summary.split(", most: ")
    assert before == (
        f"Step {step + 1} writes “{date['written'][step]}” ({numbers['probabilities'][0]:.3f}) and reads "
        f"“{shown(date['text'][most])}”, letter {most + 1} of “{date['text']}”"
    )
    number, _, rest = after.partition(" ")
    assert rest == f"{who}."
    assert float(number) == pytest.approx(expected[most], abs=0.00501)  # what ends in 5 is rounded either way


@pytest.mark.parametrize("date", range(len(DATES)), ids=[date["language"] for date in DATES])
def test_translation_shows_the_stored_weights_at_every_step(shared_figures, date):
    figure = shared_figures("translation")
    figure.root.get_by_role("radio").nth(date).check()
    for step in range(len(DATES[date]["written"])):
        assert figure.state["step"] == step
        check_translation(figure)
        figure.press(figure.control("Step"), "ArrowRight")
    assert figure.state["step"] == len(DATES[date]["written"]) - 1  # the last one


def test_translation_shows_every_head(shared_figures):
    figure = shared_figures("translation")
    figure.press(figure.control("Step"), "ArrowRight", "ArrowRight")
    for head in range(len(HEADS) + 1):
        assert figure.state["head"] == head
        check_translation(figure)
        figure.press(figure.control("Head"), "ArrowRight")


def test_translation_follows_the_mouse_over_what_is_written(shared_figures):
    figure = shared_figures("translation")
    written = figure.root.locator(".lf-letter")
    written.nth(5).hover()
    assert figure.state["step"] == 5
    check_translation(figure)
    written.nth(2).click()
    assert figure.state["step"] == 2
    check_translation(figure)


def test_translation_follows_the_arrow_keys(shared_figures):
    figure = shared_figures("translation")
    figure.page.mouse.move(0, 0)
    written = figure.root.locator(".lf-letter")
    figure.press(written.nth(0), "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert figure.state["step"] == 2
    assert written.nth(2).evaluate("node => node === document.activeElement")
    assert written.nth(2).get_attribute("aria-current") == "step"
    check_translation(figure)
    figure.press(written.last, "ArrowRight")  # goes nowhere
    figure.press(written.last, "Enter")
    assert figure.state["step"] == len(DATES[0]["written"]) - 1
    check_translation(figure)


def test_translation_begins_anew_with_another_date_and_keeps_the_head(shared_figures):
    figure = shared_figures("translation")
    figure.press(figure.control("Step"), "End")
    figure.press(figure.control("Head"), "End")
    figure.root.get_by_role("radio").nth(1).check()
    assert (figure.state["date"], figure.state["step"], figure.state["head"]) == (1, 0, len(HEADS))
    check_translation(figure)
