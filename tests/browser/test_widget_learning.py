"""The live figures of the primer: gradient descent, and a network with a hidden layer."""

import math

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "descent": [("Learning rate", "ArrowRight"), ("One step", "Enter"), ("Ten steps", "Space")],
    "network": [("Hidden units", "ArrowRight"), ("Random start", "ArrowRight"), ("A hundred steps", "Enter")],
}

TARGETS = jnp.array([0, 0, 0, 0, 0, 1, 1, 2])


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
    for _ in range(4):
        figure.press(figure.control("Ten steps"), "Enter")
    assert figure.state["steps"] == 40  # where its chart ends
    assert figure.control("One step").get_attribute("aria-disabled") == "true"


SWITCHES = jnp.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
IS_LIGHT = jnp.array([0, 1, 1, 0])
NAMES = ("first", "firstBias", "second", "secondBias")


def network(numbers, x):
    first, first_bias, second, second_bias = numbers
    return jax.nn.relu(x @ first + first_bias) @ second + second_bias


def network_loss(numbers):
    return pf.cross_entropy(network(numbers, SWITCHES), IS_LIGHT)


def check_network(state):
    numbers, losses = [jnp.array(state["begin"][name], jnp.float32) for name in NAMES], []
    step = jax.jit(jax.value_and_grad(network_loss))
    for _ in range(state["steps"]):
        loss, slopes = step(numbers)
        losses.append(loss)
        numbers = [each - 0.3 * slope for each, slope in zip(numbers, slopes, strict=True)]
    losses.append(network_loss(numbers))
    np.testing.assert_allclose(state["losses"], losses, atol=1e-4)
    for name, each in zip(NAMES, numbers, strict=True):
        np.testing.assert_allclose(state["numbers"][name], each, atol=1e-4)
    answers = jax.nn.softmax(network(numbers, SWITCHES))[:, 1]
    np.testing.assert_allclose(state["answers"], answers, atol=1e-4)
    assert state["right"] == ((answers > 0.5) == (IS_LIGHT == 1)).sum()


def test_network_numbers_are_those_of_python(shared_figures):
    figure = shared_figures("network")
    check_network(figure.state)
    for label in ("One step", "Ten steps", "A hundred steps"):
        figure.press(figure.control(label), "Enter")
        check_network(figure.state)
    assert figure.state["steps"] == 111
    figure.press(figure.control("Hidden units"), "End")
    assert (figure.state["units"], figure.state["steps"]) == (16, 0)
    for _ in range(5):
        figure.press(figure.control("A hundred steps"), "Enter")
    assert figure.state["steps"] == 400
    assert figure.control("One step").get_attribute("aria-disabled") == "true"
    check_network(figure.state)
    assert figure.state["right"] == 4
    assert "4 of 4 answers are right" in figure.summary


def test_network_starts_differ_and_some_get_stuck(shared_figures):
    figure = shared_figures("network")
    right = []
    for _ in range(6):
        for _ in range(4):
            figure.press(figure.control("A hundred steps"), "Enter")
        right.append(figure.state["right"])
        figure.press(figure.control("Random start"), "ArrowRight")
    assert min(right) < 4
    assert max(right) == 4
