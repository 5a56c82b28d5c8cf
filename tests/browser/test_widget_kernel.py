"""The live figure of kernel smoothing: worked with mouse and keyboard, its numbers stay the package's."""

import jax.numpy as jnp
import numpy as np

from plainformer.attention import relations

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "kernel": [("Query at", "ArrowRight"), ("Width", "ArrowLeft"), ("Point 3", "Space"), ("Value", "ArrowRight")],
}

GRID = np.linspace(0, 10, 201)


def check_kernel(state):
    points = jnp.asarray(state["points"], jnp.float32)
    keys, values, width = points[:, :1], points[:, 1:], float(state["width"])
    query = jnp.asarray([[state["query"]]], jnp.float32)
    np.testing.assert_allclose(state["weights"], relations.kernel_weights(query, keys, width)[0], atol=1e-4)
    np.testing.assert_allclose(state["value"], relations.kernel_smooth(query, keys, values, width)[0, 0], atol=1e-4)
    curve = relations.kernel_smooth(jnp.asarray(GRID[:, None], jnp.float32), keys, values, width)[:, 0]
    np.testing.assert_allclose(state["curve"], curve, atol=1e-4)


def test_kernel_follows_the_keyboard(shared_figures):
    figure = shared_figures("kernel")
    check_kernel(figure.state)
    for label, key in [("Query at", "ArrowRight"), ("Width", "End"), ("Query at", "Home")]:
        before = figure.state
        figure.press(figure.control(label), key)
        assert figure.state["value"] != before["value"]
        check_kernel(figure.state)
    figure.root.locator("input[value='3']").check()
    figure.press(figure.control("Value"), "End")
    assert figure.state["points"][3] == [3.5, 3]
    figure.press(figure.control("Place"), "Home")
    assert figure.state["points"][3] == [0, 3]
    check_kernel(figure.state)


def test_kernel_follows_the_mouse(shared_figures):
    figure = shared_figures("kernel")
    before = figure.state
    dot = figure.root.locator("svg circle:not(.lf-spot)").nth(4)
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    mouse = figure.page.mouse
    mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    mouse.down()
    mouse.move(box["x"] + 40, box["y"] - 60, steps=4)
    mouse.up()
    after = figure.state
    assert after["chosen"] == 4
    assert after["points"][4][0] > before["points"][4][0]
    assert after["points"][4][1] > before["points"][4][1]
    assert after["points"][:4] == before["points"][:4]
    check_kernel(after)
    mouse.move(box["x"], box["y"])
    assert figure.state == after  # let go


def test_kernel_shows_its_weights(shared_figures):
    figure = shared_figures("kernel")
    state = figure.state
    shown = figure.root.locator("tbody tr td:last-child").all_inner_texts()
    assert shown == [f"{weight:.3f}" for weight in state["weights"]]
    most = int(np.argmax(state["weights"]))
    assert f"Point {most + 1} weighs most, {state['weights'][most]:.2f}" in figure.summary
