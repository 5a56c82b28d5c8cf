"""The live figure of a drawn digit: what it shows is what the package makes of the image that was drawn."""

import base64
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "patches": [
        ("test digit 18", "Space"),
        ("block 2, head 3", "Space"),
        ("Paper", "Space"),
        ("Patch in row 2, column 2", "Enter"),
    ],
}

ROOT = Path(__file__).parents[2]
DIGITS = json.loads((ROOT / "widgets" / "digits.json").read_text("utf-8"))["images"]
CLOSE = {"rtol": 0, "atol": 1e-4}
RANDOM = np.random.default_rng(0)


def curve(centre, radii, start, end):
    turns = np.radians(np.linspace(start, end, 9))
    return [(centre[0] + radii[0] * np.cos(turn), centre[1] + radii[1] * np.sin(turn)) for turn in turns]


# How a hand writes the digits, in a box from 0 to 1.
HAND = {
    0: [curve((0.5, 0.5), (0.3, 0.45), -90, 270)],
    1: [[(0.35, 0.25), (0.55, 0.05), (0.55, 0.95)]],
    2: [[*curve((0.5, 0.28), (0.28, 0.22), 180, 400), (0.2, 0.93), (0.8, 0.93)]],
    3: [[*curve((0.45, 0.27), (0.28, 0.22), 200, 450), *curve((0.45, 0.71), (0.32, 0.24), 270, 520)]],
    4: [[(0.6, 0.05), (0.2, 0.62), (0.85, 0.62)], [(0.62, 0.35), (0.62, 0.95)]],
    5: [[(0.75, 0.07), (0.3, 0.07), (0.27, 0.45), *curve((0.48, 0.67), (0.28, 0.27), 235, 500)]],
    6: [[(0.65, 0.05), (0.4, 0.3), *curve((0.5, 0.7), (0.27, 0.24), 190, 550)]],
    7: [[(0.2, 0.07), (0.8, 0.07), (0.4, 0.95)]],
    8: [curve((0.5, 0.27), (0.22, 0.21), 90, 450), curve((0.5, 0.72), (0.28, 0.23), -90, 270)],
    9: [[*curve((0.5, 0.28), (0.25, 0.23), 0, 360), (0.73, 0.5), (0.6, 0.95)]],
}


@pytest.fixture(scope="module")
def model():
    return pf.load_pretrained("vision")[0]


@pytest.fixture
def figure(shared_figures):
    return shared_figures("patches")


@eqx.filter_jit
def readings(model, image):
    """What the model says of an image, and where it looks."""
    return jax.nn.softmax(model(image)), model.attention_weights(image)


def check(state, model, patch=2):
    """The figure's numbers are the package's, for the image that it says it shows."""
    image = jnp.asarray(state["pixels"], jnp.float32)[:, :, None] / 8  # from 0 to 2, as the model was trained
    whole, _ = readings(model, image)
    _, right = model.config.grid
    for hidden in state["hidden"]:
        top, left = patch * (hidden // right), patch * (hidden % right)
        image = image.at[top : top + patch, left : left + patch].set(0.0)
    now, weights = readings(model, image)
    block, _, head = state["view"].partition(".")
    if block == "rollout":
        seen = pf.attention_rollout(weights)
    else:
        seen = weights[int(block)].mean(axis=0) if head == "mean" else weights[int(block), int(head)]
    np.testing.assert_allclose(state["whole"], whole, **CLOSE)
    np.testing.assert_allclose(state["now"], now, **CLOSE)
    np.testing.assert_allclose(state["patches"], seen[0, 1:], **CLOSE)
    assert state["self"] == pytest.approx(float(seen[0, 0]), abs=1e-4)
    assert state["answer"] == int(now.argmax())


def draw(figure, strokes):
    """Draw with the mouse; places are shares of the paper."""
    paper = figure.root.locator(".lf-paper[tabindex]")
    paper.scroll_into_view_if_needed()
    box = paper.bounding_box()
    for stroke in strokes:
        (x, y), *rest = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        figure.page.mouse.move(x, y)
        figure.page.mouse.down()
        for x, y in rest:
            figure.page.mouse.move(x, y)
        figure.page.mouse.up()


def clear(figure):
    figure.root.get_by_role("button", name="Clear").click()


def choose(figure, view):
    figure.root.locator(f".lf-maps input[value='{view}']").focus()
    figure.root.locator(f".lf-maps input[value='{view}']").check(force=True)


def test_patches_of_test_digits_are_what_the_model_makes_of_them(figure, model):
    assert figure.state["example"] == 0
    for n, digit in enumerate(DIGITS):
        figure.root.get_by_role("radio", name=f"test digit {digit['number']}, a").check(force=True)
        state = figure.settled()
        assert (state["number"], state["label"], state["pixels"]) == (digit["number"], digit["label"], digit["pixels"])
        check(state, model)
        assert n == state["example"]
    assert f"A {DIGITS[-1]['label']}: the model says" in figure.summary


def test_patches_of_random_drawings_are_what_the_model_makes_of_them(figure, model):
    views = ["rollout", *(f"{block}.{head}" for block in range(3) for head in [*range(4), "mean"])]
    for _ in range(5):
        clear(figure)
        draw(figure, [RANDOM.random((4, 2)).tolist()])
        choose(figure, RANDOM.choice(views))
        for patch in RANDOM.choice(16, 2, replace=False):
            figure.root.locator(".lf-patch").nth(int(patch)).click()
        check(figure.settled(), model)


def test_patches_drawn_digits_look_like_those_of_the_data_set_and_are_named(figure, model):
    training = np.asarray(pf.data.digits().training.images)[..., 0]
    shares = training.mean(axis=(1, 2))
    named = {"as the data": [], "as drawn": []}
    for digit, strokes in HAND.items():
        clear(figure)
        draw(figure, [[(0.25 + 0.35 * x, 0.2 + 0.5 * y) for x, y in stroke] for stroke in strokes])
        state = figure.settled()
        image = np.array(state["pixels"]) / 16
        assert image[[0, -1]].any(axis=1).all()  # from the first row to the last, as all of them
        assert not image[:, [0, -1]].any()
        assert shares.min() <= image.mean() <= shares.max()
        named["as the data"].append(state["answer"] == digit)
        figure.control("prepared like").uncheck()
        state = figure.settled()
        assert not np.array(state["pixels"])[-1].any()
        check(state, model)
        named["as drawn"].append(state["answer"] == digit)
        figure.control("prepared like").check()
    assert sum(named["as the data"]) >= 9  # ten and one, as the chapter says; browsers round the pointer's places
    assert sum(named["as drawn"]) <= 3


def test_patches_are_drawn_with_keys(figure, model):
    clear(figure)
    assert "Blank paper" in figure.summary
    paper = figure.root.get_by_role("application")
    figure.press(paper, *["ArrowUp"] * 10, "Space", *["ArrowDown"] * 20, "Space", "ArrowLeft", "ArrowLeft")
    state = figure.settled()
    assert state["pen"] == {"x": 14, "y": 26, "down": False}
    assert state["answer"] == 1
    check(state, model)


def test_patches_are_hidden_by_tap_drag_and_keys(figure, model):
    start = figure.settled()
    patches = figure.root.locator(".lf-patch")
    patches.nth(6).click()
    assert figure.settled()["hidden"] == [6]
    assert "with the patch in row 2, column 3 hidden" in figure.summary
    boxes = [patches.nth(n).bounding_box() for n in (8, 11)]
    figure.page.mouse.move(*(boxes[0][side] + 9 for side in "xy"))
    figure.page.mouse.down()
    figure.page.mouse.move(*(boxes[1][side] + 9 for side in "xy"), steps=12)
    figure.page.mouse.up()
    assert figure.settled()["hidden"] == [6, 8, 9, 10, 11]
    check(figure.state, model)
    figure.press(patches.nth(0), "ArrowRight", "ArrowDown", "Enter", "ArrowRight", "Space")
    state = figure.settled()
    assert state["hidden"] == [5, 8, 9, 10, 11]  # the last key shows patch 6 again
    assert [patches.nth(n).get_attribute("aria-checked") for n in (4, 5)] == ["false", "true"]
    assert "hidden" in patches.nth(5).get_attribute("aria-label")
    check(state, model)
    figure.root.get_by_role("button", name="Show all").click()
    assert figure.settled() == start


def test_patches_show_their_numbers(figure):
    choose(figure, "1.2")
    figure.root.locator(".lf-patch").nth(5).click()
    state = figure.settled()
    shares = figure.root.locator(".lf-sheet.lf-washed").evaluate("""node => {
        const { data } = node.getContext('2d').getImageData(0, 0, node.width, node.height);
        return Array.from(data).filter((_, n) => n % 4 === 3).map((alpha) => alpha / 255); }""")
    assert shares == pytest.approx([0.7 * value / max(state["patches"]) for value in state["patches"]], abs=5e-3)
    assert f"row 2, column 2, attention {state['patches'][5]:.3f}" in figure.root.inner_text()
    rows = figure.root.locator("table", has_text="What the model says").locator("tbody tr")
    for answer, row in enumerate(rows.all()):
        assert row.locator("td").nth(1).inner_text() == f"{state['now'][answer]:.3f}"
        assert row.locator("td").nth(2).inner_text() == f"{state['whole'][answer]:.3f}"
        width = row.locator(".lf-bar").evaluate("node => parseFloat(node.style.width)")
        assert width == pytest.approx(100 * state["now"][answer], abs=1e-3)
        assert row.locator("th").inner_text() == ("label: 5" if answer == 5 else str(answer))


def test_patches_by_finger(open_figure):
    figure = open_figure("patches", viewport={"width": 390, "height": 844}, has_touch=True).start()
    touch = figure.visit.context.new_cdp_session(figure.page)

    def swipe(locator, *places):
        locator.scroll_into_view_if_needed()
        box = locator.bounding_box()
        for n, (x, y) in enumerate(places):
            point = {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]}
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove" if n else "touchStart", "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    figure.root.get_by_role("button", name="Clear").tap()
    paper = figure.root.locator(".lf-paper[tabindex]")
    paper.scroll_into_view_if_needed()
    scrolled = figure.page.evaluate("scrollY")
    swipe(paper, *[(0.5, 0.1 + 0.08 * n) for n in range(11)])
    assert figure.settled()["answer"] == 1
    assert figure.page.evaluate("scrollY") == scrolled
    swipe(figure.root.locator(".lf-patches"), *[(0.1 + 0.1 * n, 0.4) for n in range(9)])
    assert figure.settled()["hidden"] == [4, 5, 6, 7]


def test_patches_follow_the_theme(figure):
    colour = """node => Array.from(node.getContext('2d').getImageData(node.width / 2, 0, 1, node.height).data)
        .filter((_, n) => n % 4 === 0).reduce((a, b) => Math.max(a, b))"""
    sheet = figure.root.locator(".lf-paper[tabindex] canvas")
    figure.visit.theme("light")
    light = sheet.evaluate(colour)
    figure.visit.theme("dark")
    assert sheet.evaluate(colour) > 200 > 60 > light
    figure.visit.theme("light")


def test_patches_begin_without_digits(open_figure):
    """One can still draw."""
    figure = open_figure("patches")
    figure.page.route("**/digits.json", lambda route: route.abort())
    figure.start()
    assert figure.settled()["answer"] == 3  # what is drawn instead
    assert not figure.root.get_by_role("group", name="Test digits").is_visible()


MOUNT = """async ([bytes, ink]) => {
    const { mount } = await import(new URL('_static/widgets/patches.mjs', document.baseURI));
    const element = document.body.appendChild(document.createElement('div'));
    const file = await (await fetch(`data:;base64,${bytes}`)).arrayBuffer();
    await mount(element, { name: bytes.slice(-40), bytes: file, ink });
}"""


def test_patches_of_another_model(open_page, tmp_path):
    """As in a notebook: images of another size, drawn as they are, for a model of the reader's own."""
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, position_scheme="learned")
    config = pf.ViTConfig(image_size=(12, 20), patch_size=(4, 5), num_classes=7, stack=stack, pooling="mean")
    own = pf.ViT(config, key=jax.random.key(3))
    pf.save_model(tmp_path / "own.safetensors", own)
    visit = open_page("404.html")
    visit.page.evaluate(MOUNT, [base64.b64encode((tmp_path / "own.safetensors").read_bytes()).decode(), 3.0])
    root = visit.page.locator(".lf").last
    root.locator(".lf-patch").nth(4).click()
    visit.page.wait_for_function("root => !JSON.parse(root.dataset.state).busy", arg=root.element_handle())
    state = json.loads(root.get_attribute("data-state"))
    assert np.shape(state["pixels"]) == (12, 20)
    assert np.max(state["pixels"]) == 16
    image = 3 * jnp.asarray(state["pixels"], jnp.float32)[:, :, None] / 16
    np.testing.assert_allclose(state["whole"], readings(own, image)[0], **CLOSE)
    image = image.at[4:8, 0:5].set(0.0)  # the patch in row 1, column 0 of three rows and four columns
    now, weights = readings(own, image)
    np.testing.assert_allclose(state["now"], now, **CLOSE)
    last = weights[1].mean(axis=0)
    np.testing.assert_allclose(state["patches"], last.mean(axis=0), **CLOSE)
    root.locator("input[value=rollout]").check(force=True)
    rolled = pf.attention_rollout(weights)
    state = json.loads(root.get_attribute("data-state"))
    np.testing.assert_allclose(state["patches"], rolled.mean(axis=0), **CLOSE)
