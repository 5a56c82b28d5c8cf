"""The live figure of patches: what it shows is what the package makes of the stored model and its digits."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

ROOT = Path(__file__).parents[2]
NUMBERS = json.loads((ROOT / "widgets" / "patches.json").read_text("utf-8"))
IMAGES = NUMBERS["images"]
CLOSE = {"rtol": 0, "atol": 1.1e-3}  # thousandths, of two numbers


@pytest.fixture(scope="module")
def model():
    return pf.load_model(ROOT / "models" / "vision.safetensors", pf.ViT)


def check_patches(state, model):
    shown = IMAGES[state["image"]]
    assert (state["number"], state["label"]) == (shown["number"], shown["label"])
    image = jnp.asarray(shown["pixels"], jnp.float32)[:, :, None] / 8  # from 0 to 2, as the model was trained
    whole = jax.nn.softmax(model(image))
    if state["hidden"] is not None:
        top, left = 2 * (state["hidden"] // 4), 2 * (state["hidden"] % 4)
        image = image.at[top : top + 2, left : left + 2].set(0.0)
    now, weights = jax.nn.softmax(model(image)), model.attention_weights(image)
    if state["layer"] == "rollout":
        seen = pf.attention_rollout(weights)
    else:
        layer = weights[state["layer"]]
        seen = layer.mean(axis=0) if state["head"] == "mean" else layer[state["head"]]
    np.testing.assert_allclose(state["whole"], whole, **CLOSE)
    np.testing.assert_allclose(state["now"], now, **CLOSE)
    np.testing.assert_allclose(state["patches"], pf.class_attention(seen, (4, 4)).reshape(-1), **CLOSE)
    assert state["self"] == pytest.approx(float(seen[0, 0]), abs=1.1e-3)
    assert state["answer"] == int(now.argmax())


def choose(figure, legend, words):
    figure.root.get_by_role("group", name=legend).get_by_label(words, exact=True).first.check()


@pytest.mark.parametrize("image", range(len(IMAGES)))
def test_patches_are_what_the_stored_model_makes_of_them(shared_figures, model, image):
    figure = shared_figures("patches")
    figure.root.get_by_role("group", name="Digit", exact=True).get_by_role("radio").nth(image).check()
    check_patches(figure.state, model)
    for layer, head, patch in [("block 1", "head 2", 5), ("block 3", "mean", 10), ("block 2", "head 4", 0)]:
        choose(figure, "Attention", layer)
        choose(figure, "Head", head)
        figure.root.locator(".lf-patch").nth(patch).click()
        assert figure.state["hidden"] == patch
        check_patches(figure.state, model)
    choose(figure, "Attention", "roll-out")
    check_patches(figure.state, model)


def test_patches_hide_and_come_back(shared_figures, model):
    figure = shared_figures("patches")
    start = figure.state
    patch = figure.root.locator(".lf-patch").nth(6)
    figure.press(patch, "Enter")
    assert patch.get_attribute("aria-pressed") == "true"
    assert "hidden" in patch.get_attribute("aria-label")
    assert "with the patch in row 2, column 3 hidden" in figure.summary
    figure.press(figure.root.locator(".lf-patch").nth(9), "Space")
    assert figure.state["hidden"] == 9
    assert patch.get_attribute("aria-pressed") == "false"
    figure.root.locator(".lf-patch").nth(9).click()
    assert figure.state == start
    figure.root.locator(".lf-patch").nth(9).click()
    figure.root.get_by_role("group", name="Digit", exact=True).get_by_role("radio").nth(0).check()
    assert figure.state["hidden"] is None  # another digit is whole


def test_patches_show_the_numbers(shared_figures):
    figure = shared_figures("patches")
    choose(figure, "Attention", "block 2")
    choose(figure, "Head", "head 3")
    figure.root.locator(".lf-patch").nth(5).click()
    state = figure.state
    cells = figure.root.locator("td.lf-cell").all_inner_texts()
    assert [float(cell) for cell in cells] == pytest.approx(state["patches"], abs=5.1e-3)
    opacities = figure.root.locator(".lf-wash").evaluate_all("all => all.map((node) => Number(node.style.opacity))")
    assert opacities == pytest.approx([0.6 * value / max(state["patches"]) for value in state["patches"]], abs=1e-6)
    ink = figure.root.locator(".lf-patch").evaluate_all("""all => all.map((patch) =>
        [...patch.querySelectorAll('.lf-pixel')].map((node) => parseInt(node.style.getPropertyValue('--share'))))""")
    for patch, shares in enumerate(ink):
        top, left = 2 * (patch // 4), 2 * (patch % 4)
        pixels = np.array(IMAGES[state["image"]]["pixels"])[top : top + 2, left : left + 2].reshape(-1)
        assert shares == pytest.approx([0] * 4 if patch == 5 else list(100 * pixels / 16), abs=0.51)
    table = figure.root.locator("table", has_text="What the model says").locator("tbody tr")
    for digit, row in enumerate(table.all()):
        assert row.locator("td").nth(0).inner_text() == f"{state['whole'][digit]:.3f}"
        assert row.locator("td").nth(1).inner_text() == f"{state['now'][digit]:.3f}"
        assert row.locator("th.lf-chosen").count() == (digit == state["answer"])


def test_patches_head_is_asked_for_only_where_there_is_one(shared_figures):
    figure = shared_figures("patches")
    heads = figure.root.get_by_role("group", name="Head", exact=True)
    assert heads.count() == 0  # roll-out takes the mean of all heads
    choose(figure, "Attention", "block 1")
    assert heads.is_visible()
