"""The live figure of turning bodies: the rule and the models that it runs are the package's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.data.rigid_body import energy, first_states, implicit_midpoint
from plainformer.models import dynamics
from plainformer.models.stored import load_pretrained

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "dynamics": [("without y₁", "Space"), ("at the angle", "ArrowRight"), ("Points", "Home")],
}

MARGIN = 1e-4
KINDS = ["volume_preserving", "residual", "turning"]


def expected(kind, circle, angle, steps):
    """The last points of the rule and of the model, both in double precision, as the page computes them."""
    start = first_states(np.array([angle]))[circle][0]
    rule = implicit_midpoint(start, num_steps=steps + 2)
    before = jax.config.read("jax_enable_x64")
    models, _ = load_pretrained("dynamics")
    jax.config.update("jax_enable_x64", True)
    try:
        model = jax.tree.map(lambda array: jnp.asarray(np.asarray(array, np.float64)), models.one(kind, 0))
        points = dynamics.rollout(model, jnp.asarray(rule[:3]), -(-steps // 3))
        return rule[-1], np.asarray(points)[steps - 1]
    finally:
        jax.config.update("jax_enable_x64", before)


def check(figure, kind, circle, angle, steps):
    state = figure.state
    rule, model = expected(kind, circle, angle, steps)
    np.testing.assert_allclose(state["rule"], rule, rtol=0, atol=MARGIN)
    np.testing.assert_allclose(state["model"], model, rtol=0, atol=MARGIN)
    np.testing.assert_allclose(state["lengths"], [(rule**2).sum(), (model**2).sum()], rtol=0, atol=MARGIN)
    np.testing.assert_allclose(state["energies"], energy(np.stack([rule, model])), rtol=0, atol=MARGIN)
    assert state["distance"] == pytest.approx(np.linalg.norm(rule - model), abs=MARGIN)


@pytest.mark.parametrize("kind", KINDS)
def test_dynamics_numbers_are_the_packages(shared_figures, kind):
    figure = shared_figures("dynamics")
    figure.root.locator(f"input[value={kind}]").check()
    check(figure, kind, 0, 1.1, figure.state["steps"])


def test_dynamics_follows_other_first_states(shared_figures):
    figure = shared_figures("dynamics")
    figure.root.locator("input[value=first]").check()
    figure.press(figure.control("at the angle"), "ArrowRight", "ArrowRight")
    figure.press(figure.control("Points"), "Home")
    assert figure.state["angle"] == pytest.approx(1.12)
    assert figure.state["steps"] == 3
    check(figure, "volume_preserving", 1, 1.12, 3)
    assert "points after the first three: length squared" in figure.summary
    rows = figure.root.locator("tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["|y|²", "energy", "distance"]


def test_dynamics_turns_by_keys_and_by_dragging(shared_figures):
    figure = shared_figures("dynamics")
    picture = figure.root.locator("svg[tabindex]")
    before, numbers = picture.inner_html(), figure.state["model"]
    figure.press(picture, "ArrowLeft", "ArrowUp")
    assert figure.state["turn"] == pytest.approx(0.5)
    assert figure.state["tilt"] == pytest.approx(0.45)
    turned = picture.inner_html()
    assert turned != before
    box = picture.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    figure.page.mouse.move(x, y)
    figure.page.mouse.down()
    figure.page.mouse.move(x + 40, y - 20, steps=4)
    figure.page.mouse.up()
    assert figure.state["turn"] == pytest.approx(0.9)
    assert figure.state["tilt"] == pytest.approx(0.25)
    assert picture.inner_html() != turned
    assert figure.state["model"] == numbers
    figure.reset()
    assert picture.inner_html() == before
