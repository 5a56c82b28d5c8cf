"""The live figure of patching: its map is that of Python, for every pair of stories and both ways."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.models import patch

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {"inside": [("the other way round", "Space")]}
MODEL, WORDS = pf.load_pretrained("stories")
PLACES = ["stack.input"]
for block in range(4):
    PLACES += [f"stack.blocks.{block}.{name}" for name in ("attention.output", "feed_forward.output", "output")]


@functools.cache
def program(place):
    """Logits after the last word, a row for each token that is patched at this place."""

    def run(ours, source, rows):
        def at(n):
            return patch(MODEL, ours, places={place: np.s_[n, :]}, source={place: source})[-1]

        return jax.vmap(at)(rows)

    return eqx.filter_jit(run)


def check(state):
    ours, theirs, first = jnp.asarray(state["read"]), jnp.asarray(state["other"]), state["first"]
    assert (np.flatnonzero(np.asarray(ours != theirs))).tolist() == [first]
    said, _ = pf.look(MODEL, ours)
    there, source = pf.look(MODEL, theirs)
    a, b = (int(logits[-1].argmax()) for logits in (said, there))
    assert state["answers"] == [a, b]
    before, after = (float(logits[-1, a] - logits[-1, b]) for logits in (said, there))
    np.testing.assert_allclose([state["before"], state["after"]], [before, after], atol=1e-3)
    rows = jnp.arange(first, len(ours))
    patched = np.stack([program(place)(ours, source[place], rows) for place in PLACES])
    effects = (patched[..., a] - patched[..., b] - before) / (after - before)
    np.testing.assert_allclose(state["effects"], effects, atol=1e-3)
    chosen = jax.nn.softmax(patched[state["place"], state["token"]])
    runs = [jax.nn.softmax(said[-1]), chosen, jax.nn.softmax(there[-1])]
    np.testing.assert_allclose(state["chances"], [[run[each] for run in runs] for each in (a, b)], atol=1e-3)


@pytest.mark.parametrize("pair", [1, 4])
def test_map_is_that_of_python_there_and_back(shared_figures, pair):
    figure = shared_figures("inside")
    figure.root.locator("select").select_option(str(pair))
    for _ in range(2):
        state = figure.settled()
        assert state["pair"] == pair
        check(state)
        figure.control("the other way round").click()
    figure.settled()


def test_a_box_is_pressed_or_reached_by_arrows(shared_figures):
    figure = shared_figures("inside")
    figure.root.locator("select").select_option("0")
    figure.settled()
    plane = figure.root.locator(".lf-map-plane")
    figure.press(plane, "ArrowDown", "ArrowDown", "ArrowRight")
    assert (figure.state["place"], figure.state["token"]) == (5, 1)
    check(figure.state)
    box = plane.bounding_box()
    plane.click(position={"x": box["width"] - 3, "y": box["height"] - 3})
    state = figure.state
    assert (state["place"], state["token"]) == (len(PLACES) - 1, len(state["read"]) - state["first"] - 1)
    np.testing.assert_allclose(state["effects"][-1][-1], 1, atol=1e-4)
    assert "the effect is 1.00" in figure.summary
