"""The live figures of the primer and of the decoder: gradient descent, and a model's surprise."""

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

TARGETS = jnp.array([0, 0, 0, 0, 0, 1, 1, 2])
TEXTS = json.loads((Path(__file__).parents[2] / "widgets" / "surprise.json").read_text("utf-8"))["texts"]


# --- descent --------------------------------------------------------------------------------------------------------


def loss(logits):
    return pf.cross_entropy(jnp.tile(logits, (8, 1)), TARGETS)


def check_descent(state):
    logits, losses = jnp.zeros(3), []
    for _ in range(state["steps"]):
        losses.append(float(loss(logits)))
        logits = logits - state["rate"] * jax.grad(loss)(logits)
    losses.append(float(loss(logits)))
    np.testing.assert_allclose(state["losses"], losses, atol=1e-4)
    np.testing.assert_allclose(state["logits"], logits, atol=1e-4)
    np.testing.assert_allclose(state["probabilities"], jax.nn.softmax(logits), atol=1e-4)
    np.testing.assert_allclose(state["gradient"], jax.grad(loss)(logits), atol=1e-4)


def test_descent_numbers_are_those_of_python(shared_figures):
    figure = shared_figures("descent")
    check_descent(figure.state)
    for label in ("One step", "One step", "Ten steps"):
        figure.press(figure.control(label), "Enter")
        check_descent(figure.state)
    assert figure.state["steps"] == 12
    cells = figure.root.locator("tbody tr").first.locator("td").all_inner_texts()
    shown = [0.625, *(figure.state[name][0] for name in ("logits", "probabilities", "gradient"))]
    np.testing.assert_allclose([float(cell.replace("−", "-")) for cell in cells], shown, atol=6e-4)
    assert f"{figure.state['losses'][-1]:.3f} nats, hardly above the smallest" in figure.summary


def test_descent_begins_anew_at_another_rate_and_may_go_up(shared_figures):
    figure = shared_figures("descent")
    figure.press(figure.control("Ten steps"), "Enter")
    figure.press(figure.control("Learning rate"), "End")
    assert (figure.state["rate"], figure.state["steps"]) == (16, 0)
    figure.press(figure.control("One step"), "Enter")
    check_descent(figure.state)
    assert figure.state["losses"][1] > math.log(3)
    assert "more than at the start" in figure.summary


def test_descent_ends_where_its_chart_does(shared_figures):
    figure = shared_figures("descent")
    for _ in range(5):
        figure.press(figure.control("Ten steps"), "Enter")
    assert figure.state["steps"] == 40
    assert figure.control("One step").get_attribute("aria-disabled") == "true"


# --- surprise -------------------------------------------------------------------------------------------------------


def check_surprise(figure):
    state = figure.state
    text = TEXTS[state["text"]]
    place = state["place"]
    assert (state["words"], state["came"]) == (text["text"], text["text"][place])
    assert state["surprise"] == text["surprises"][place - 1]
    np.testing.assert_allclose(state["mean"], np.mean(text["surprises"]), atol=1e-9)
    letters = [letter.strip().replace("␣", " ") for letter in figure.root.locator(".lf-read").all_inner_texts()]
    assert "".join(letters) == text["text"]
    shares = figure.root.locator(".lf-read").evaluate_all(
        "all => all.map((node) => parseInt(node.style.getPropertyValue('--share')))"
    )
    np.testing.assert_allclose(shares, [0, *(100 * np.minimum(1, np.array(text["surprises"]) / 6))], atol=0.51)
    rows = figure.root.locator("tbody tr")
    heads = [head.replace("␣", " ").replace("↵", "\n") for head in rows.locator("th").all_inner_texts()]
    assert heads == [letter for letter, _ in text["expected"][place - 1]]
    numbers = rows.locator("td:nth-child(2)").all_inner_texts()
    assert numbers == [f"{share:.3f}" for _, share in text["expected"][place - 1]]
    right = rows.locator("th.lf-chosen").all_inner_texts()
    assert [head.replace("␣", " ") for head in right] == [head for head in heads if head == state["came"]]
    assert (
        f"a surprise of {state['surprise']:.2f} nats. The mean over this text is {state['mean']:.2f}" in figure.summary
    )


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_surprise_shows_the_stored_models_numbers(shared_figures, number):
    figure = shared_figures("surprise")
    figure.root.get_by_role("radio").nth(number).check()
    check_surprise(figure)
    for keys in ("ArrowRight", "ArrowRight", "End", "Home"):
        figure.press(figure.control("Letter"), keys)
        check_surprise(figure)


def test_surprise_follows_a_click_on_a_letter(shared_figures):
    figure = shared_figures("surprise")
    figure.root.locator(".lf-read").nth(20).click()
    assert figure.state["place"] == 20
    check_surprise(figure)
    figure.root.locator(".lf-read").nth(0).click()
    assert figure.state["place"] == 20  # the first letter is given: nothing was expected there
