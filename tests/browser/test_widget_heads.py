"""The live figure of a layer's heads: its numbers are those of Python in both forms, worked in every way."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "heads": [
        ("layer 2, head 4", "ArrowDown"),
        ("Token that asks", "Home"),
        ("Weights of the chosen", "ArrowUp"),
        ("concatenate, then project", "ArrowRight"),
    ],
}
STORY = ". Ben takes the ball . Ben drops the ball . where is the ball ?"


@pytest.fixture(scope="module")
def model():
    return pf.load_pretrained("stories")


def check(state, model):
    """The numbers of the token that asks against what the package computes for the same text."""
    decoder, vocabulary = model
    _, seen = pf.look(decoder, jnp.asarray(vocabulary.encode(state["text"])))
    attention = f"stack.blocks.{state['layer']}.attention."
    token, on = state["token"], np.array(state["on"])[:, None]
    heads = np.asarray(seen[attention + "heads"])[:, token] * on
    matrix = np.asarray(decoder.stack.blocks[state["layer"]].attention.output.weight)
    parts = [head @ rows for head, rows in zip(heads, np.split(matrix, len(heads)), strict=True)]
    for name, expected in {
        "weights": seen[attention + "weights"][state["head"], token],
        "joined": heads.reshape(-1),
        "parts": parts,
        "concatForm": heads.reshape(-1) @ matrix,
        "sumForm": np.sum(parts, axis=0),
    }.items():
        np.testing.assert_allclose(state[name], expected, atol=1e-4, err_msg=name)
    if on.all():
        np.testing.assert_allclose(state["sumForm"], seen[attention + "output"][token], atol=1e-4)
    assert state["difference"] < 1e-4


def test_heads_make_what_python_makes_of_them(shared_figures, model):
    figure = shared_figures("heads")
    check(figure.settled(), model)
    size = figure.root.locator(".lf-band-size").last
    shown = size.inner_text()
    figure.press(figure.root.get_by_label("concatenate, then project"), "ArrowRight")
    assert figure.state["form"] == "sum"  # in both forms they add the same
    assert shown == size.inner_text() == f"{np.sqrt(np.mean(np.square(figure.state['sumForm']))):.2f}"
    figure.root.get_by_role("button", name="Head 1").click()
    figure.press(figure.root.get_by_role("button", name="Head 5"), "Enter")
    assert figure.state["on"] == [False, True, True, True, False, True, True, True]
    check(figure.state, model)
    figure.root.get_by_label("Your text").fill(STORY)
    figure.settled()
    figure.root.get_by_role("radio", name="layer 4, head 7").click()
    figure.press(figure.root.get_by_role("listbox"), "Home", "ArrowRight")
    assert [figure.state[name] for name in ("layer", "head", "token")] == [3, 6, 1]
    check(figure.state, model)


def test_heads_that_are_all_off_add_nothing(shared_figures):
    figure = shared_figures("heads")
    for head in range(8):
        figure.root.get_by_role("button", name=f"Head {head + 1}").click()
    assert not np.any([figure.state[f"{form}Form"] for form in ("concat", "sum")])
    assert figure.root.locator(".lf-band-size").last.inner_text() == "0.00"


def test_heads_do_what_the_chapter_says_of_them(shared_figures):
    """In layer 2, the question mark reads the place with head 4, and the word `takes` with head 5."""
    figure = shared_figures("heads")
    state = figure.settled()
    assert (state["letters"][state["column"]], state["letters"][-1]) == ("garden", "?")
    assert state["weights"][state["column"]] == pytest.approx(0.71, abs=0.01)
    figure.press(figure.root.get_by_role("radio", name="layer 2, head 4"), "ArrowRight")
    state = figure.state
    assert (state["head"], state["letters"][state["column"]]) == (4, "takes")
    assert state["token"] - state["column"] == 14
