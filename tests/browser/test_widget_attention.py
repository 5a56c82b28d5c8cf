"""The live figures of attention: worked with mouse, touch and keyboard, their numbers stay the package's."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from tests.browser.conftest import AT_REST, FRAMES

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "notation": [("slip: softmax", "Space")],
    "attention": [
        ("Query q", "ArrowUp"),
        ("Key 3", "ArrowLeft"),
        ("Value 1", "ArrowDown"),
        ("Score multiplier", "ArrowRight"),
        ("May attend to token 2", "Space"),
        ("Mistake", "ArrowDown"),
        ("five", "Space"),
    ],
}

MARGIN = 1e-4


def array(numbers):
    return jnp.asarray(numbers, dtype=jnp.float32)


def assert_close(got, expected):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=0, atol=MARGIN)


# --- notation --------------------------------------------------------------------------------------------------------


def check_notation(state):
    x = array(state["rows"]["x"])
    queries, keys = x @ array(state["queryWeight"]), x @ array(state["keyWeight"])
    scores = pf.scaled_scores(queries, keys)
    weights = pf.softmax(scores.T).T if state["wrongAxis"] else pf.softmax(scores)
    for name, expected in {"x": x, "scores": scores, "weights": weights, "output": weights @ x}.items():
        assert_close(state["rows"][name], expected)
        assert_close(state["columns"][name], expected.T)


def test_notation_numbers_are_those_of_python(shared_figures):
    figure = shared_figures("notation")
    check_notation(figure.state)
    assert not figure.state["wrongAxis"]
    figure.control("slip: softmax").check()
    assert figure.state["wrongAxis"]
    check_notation(figure.state)


def test_notation_marks_one_query_in_both_conventions(shared_figures):
    figure = shared_figures("notation")
    figure.press(figure.root.get_by_label("tea", exact=True), "ArrowRight")
    state = figure.state
    assert state["chosen"] == 1
    panels = figure.root.locator(".lf-panel").all()
    marked = [panel.locator("table").nth(2).locator("td.lf-chosen").all_inner_texts() for panel in panels]
    assert marked[0] == marked[1] == [f"{weight:.2f}" for weight in state["rows"]["weights"][1]]
    # The mouse over a number of another token chooses that one.
    panels[1].locator("table").nth(2).locator("tbody tr").nth(0).locator("td").nth(2).hover()
    assert figure.state["chosen"] == 2


def test_notation_says_which_sums_are_one(shared_figures):
    figure = shared_figures("notation")
    assert figure.root.locator(".lf-one").all_inner_texts() == ["1.00"] * 6
    figure.control("slip: softmax").check()
    assert figure.root.locator(".lf-one").count() == 0
    assert figure.root.locator(".lf-not-one").count() == 6
    figure.root.get_by_label("tokens as columns").check()
    assert [panel.is_visible() for panel in figure.root.locator(".lf-panel").all()] == [False, True]


# --- attention by hand -----------------------------------------------------------------------------------------------


def weights_by_mistake(queries, keys, mask, scale, mistake):
    """What the package's functions give, put together rightly or as the mistake has it."""
    scores = pf.scaled_scores(queries, keys, scale=scale)
    if mistake == "axis":
        return pf.softmax(scores.T, mask.T).T
    if mistake == "after":
        return jnp.where(mask, pf.softmax(scores), 0)
    if mistake == "sign":
        return pf.softmax(scores, jnp.where(mask.all(axis=1, keepdims=True), mask, ~mask))
    return pf.attention_weights(queries, keys, mask, scale=scale)


def check_attention(state):
    queries, keys, values = (array(state[name]) for name in ("queries", "keys", "values"))
    mask, n, scale, mistake = jnp.asarray(state["masks"]), state["chosen"], state["scale"], state["mistake"]
    causal = state["many"] and state["causal"]
    np.testing.assert_array_equal(
        mask, pf.padding_mask(jnp.asarray(state["visible"]), 5) & (pf.causal_mask(5) | (not causal))
    )
    np.testing.assert_allclose(scale, 2 ** state["position"] * (1 if mistake == "scale" else 0.5**0.5))
    weights = weights_by_mistake(queries, keys, mask, scale, mistake)
    assert_close(state["matrix"], weights)
    assert_close(state["outputs"], pf.weighted_average(weights, values))
    if mistake in ("none", "scale"):
        assert_close(state["outputs"], pf.attend(queries, keys, values, mask, scale=scale))
    assert state["query"] == state["queries"][n]
    assert_close(state["products"], pf.dot_product_scores(queries, keys)[n])
    assert_close(state["scores"], pf.scaled_scores(queries, keys, scale=scale)[n])
    assert_close(state["weights"], weights[n])
    assert_close(state["output"], (weights @ values)[n])
    if mistake not in ("axis", "after") and any(state["weights"]):  # the shares are the exponentials over their sum
        assert_close(np.array(state["exponentials"]) / sum(state["exponentials"]), weights[n])


# Sets every control of the figure to given values by script, and returns the numbers that it then publishes.
SET = """(root, states) => states.map(({ numbers, visible, position, many, causal, mistake, chosen }) => {
    const tell = (node, kind) => node.dispatchEvent(new Event(kind, { bubbles: true }));
    const press = (node) => { if (!node.checked) node.click(); };
    press(root.querySelector(`input[value=${many ? 'five' : 'one'}]`));
    press(root.querySelector(`input[type=radio][value="${chosen}"]`));
    root.querySelectorAll('.lf-numbers input').forEach((input, i) => {
        input.value = numbers[i];
        tell(input, 'input');
    });
    const boxes = ['steps', 'controls'].flatMap((part) => [...root.querySelectorAll(`.lf-${part} [type=checkbox]`)]);
    [...visible, causal].forEach((on, i) => { if (boxes[i].checked !== on) boxes[i].click(); });
    const scale = root.querySelector('input[type=range]');
    scale.value = position;
    tell(scale, 'input');
    const list = root.querySelector('select');
    list.value = mistake;
    tell(list, 'change');
    return JSON.parse(root.dataset.state);
})"""


def test_attention_numbers_are_those_of_python(shared_figures):
    """Random states, all of them typed or set: queries, keys, values, masks, factors and mistakes."""
    random = np.random.default_rng(0)
    wanted = []
    for run in range(10):
        mistake = ["none", "scale", "axis", "after", "sign"][run % 5]
        wanted.append(
            {
                "numbers": random.uniform(-2.4, 2.4, 30).round(2).tolist(),
                "visible": (random.random(5) < 0.7).tolist(),
                "position": float(random.integers(-16, 17) / 4),
                "many": bool(mistake == "axis" or run % 2),
                "causal": bool(run % 3),
                "mistake": mistake,
                "chosen": int(random.integers(5)),
            }
        )
    for found, want in zip(shared_figures("attention").root.evaluate(SET, wanted), wanted, strict=True):
        np.testing.assert_allclose(np.ravel([found[name] for name in ("queries", "keys", "values")]), want["numbers"])
        assert all(found[name] == want[name] for name in want if name != "numbers")
        check_attention(found)


def point(figure, name):
    return figure.root.get_by_role("slider", name=name)


def test_attention_follows_the_keyboard(shared_figures):
    figure = shared_figures("attention")
    x, y = figure.state["keys"][1]
    figure.press(point(figure, "Key 2"), "ArrowLeft", "ArrowLeft", "Shift+ArrowUp")
    assert_close(figure.state["keys"][1], [x - 0.2, min(2.4, y + 0.5)])
    assert f"{x - 0.2:.2f} to the right".replace("-", "−") in point(figure, "Key 2").get_attribute("aria-valuetext")
    figure.press(point(figure, "Key 2"), *["Shift+ArrowRight"] * 12)
    assert figure.state["keys"][1][0] == pytest.approx(2.4)  # no further than the edge
    figure.press(figure.control("Score multiplier"), "End")
    check_attention(figure.state)
    assert max(figure.state["weights"]) > 0.99


def centre(figure, name):
    box = point(figure, name).locator("circle").last.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_attention_follows_the_mouse(shared_figures):
    figure = shared_figures("attention")
    before = figure.state["values"][0]
    point(figure, "Value 1").focus()  # the page scrolls to what is focused, smoothly
    figure.page.evaluate(AT_REST)
    x, y = centre(figure, "Value 1")
    mouse = figure.page.mouse
    mouse.move(x + 4, y - 3)  # taken hold of beside its middle: it does not jump there
    mouse.down()
    assert figure.state["values"][0] == before
    mouse.move(x - 46, y - 43, steps=4)
    mouse.up()
    np.testing.assert_allclose(centre(figure, "Value 1"), (x - 50, y - 40), atol=1)  # it goes with the pointer
    after = figure.state["values"][0]
    assert after[0] < before[0]
    assert after[1] > before[1]
    check_attention(figure.state)
    mouse.move(x, y)  # released: it stays where it is
    assert figure.state["values"][0] == after


def test_attention_follows_a_finger(open_figure):
    """Ten moves, all of them heard, while the page stays where it is."""
    figure = open_figure("attention", has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    point(figure, "Query q").scroll_into_view_if_needed()
    figure.page.evaluate("window.heard = []")
    for kind in ("pointermove", "pointercancel"):
        figure.page.evaluate("kind => addEventListener(kind, () => window.heard.push(kind), true)", kind)
    figure.page.evaluate(AT_REST)
    before, scrolled = figure.state["query"], figure.page.evaluate("window.scrollY")
    x, y = centre(figure, "Query q")
    finger = figure.visit.context.new_cdp_session(figure.page)
    moves = [("touchMove", [(x + 3 * step, y + 4 * step)]) for step in range(1, 11)]
    for kind, places in [("touchStart", [(x, y)]), *moves, ("touchEnd", [])]:
        touches = [{"x": across, "y": down} for across, down in places]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
        figure.page.evaluate(FRAMES, 2)  # moves within one frame would be heard as one
    np.testing.assert_allclose(centre(figure, "Query q"), (x + 30, y + 40), atol=2)
    assert figure.page.evaluate("window.scrollY") == scrolled
    assert "pointercancel" not in figure.page.evaluate("window.heard")
    assert len(figure.page.evaluate("window.heard")) >= 8
    assert figure.state["query"] != before
    check_attention(figure.state)


def test_attention_hides_tokens(shared_figures):
    figure = shared_figures("attention")
    boxes = figure.root.locator(".lf-steps").get_by_role("checkbox").all()
    boxes[1].uncheck()
    figure.press(boxes[3], "Space")
    assert figure.state["mask"] == [True, False, True, False, True]
    assert figure.state["weights"][1] == figure.state["weights"][3] == 0
    check_attention(figure.state)
    for n in (0, 2, 4):
        boxes[n].uncheck()
    assert figure.state["weights"] == [0] * 5
    assert figure.state["output"] == [0, 0]
    check_attention(figure.state)


def test_attention_table_shows_each_step(shared_figures):
    figure = shared_figures("attention")
    rows = figure.root.locator(".lf-steps tbody tr")
    for column, name in {1: "products", 2: "scores", 4: "exponentials", 5: "weights"}.items():
        cells = rows.locator(f":nth-child({column + 1}) > span:first-child").all_inner_texts()[:5]
        assert [float(cell.replace("−", "-")) for cell in cells] == pytest.approx(figure.state[name], abs=5.1e-3)
    sums = rows.last.locator("td").all_inner_texts()
    assert sums[4:] == [f"{sum(figure.state['exponentials']):.2f}", "1.00"]
    # The arrows of the weighted sum lead from the origin to the output.
    last = figure.root.locator(".lf-plane").nth(1).locator("> path.lf-arrow").last.get_attribute("d")
    tip = [float(number) for number in last.split("L")[1].split("M")[0].split()]
    assert_close(tip, [60 * figure.state["output"][0], -60 * figure.state["output"][1]])


def test_attention_says_what_a_mistake_does(shared_figures):
    figure = shared_figures("attention")
    mistake = figure.root.locator("select")
    total = figure.root.locator(".lf-steps tr").last.locator("td").last
    mistake.select_option("after")
    figure.control("May attend to token 1").uncheck()
    assert total.inner_text() == f"{sum(figure.state['weights']):.2f}" != "1.00"
    assert total.get_attribute("class") == "lf-not-one"
    mistake.select_option("sign")
    assert figure.state["weights"] == [1, 0, 0, 0, 0]
    mistake.select_option("axis")
    assert figure.state["many"]
    assert "Each column of weights sums to 1" in figure.summary
    assert figure.root.locator(".lf-matrix .lf-not-one").count() == 5
    figure.root.locator(".lf-matrix tbody tr").nth(1).click()
    assert figure.state["chosen"] == 1
    figure.root.locator("input[value=one]").check()  # with one query there is no other axis
    assert figure.state["mistake"] == "none"


def test_attention_numbers_can_be_typed(shared_figures):
    figure = shared_figures("attention")
    figure.root.get_by_role("button", name="Type the numbers").click()
    field = figure.root.get_by_label("Keys, k₂, up")
    assert field.input_value() == "1.8"
    field.fill("-0.75")
    assert figure.state["keys"][1] == [0.4, -0.75]
    check_attention(figure.state)
    figure.press(point(figure, "Key 2"), "ArrowUp")
    assert field.input_value() == "-0.65"  # the field goes with the point
    for bad in ("", "9", "-3"):
        field.fill(bad)
        assert field.get_attribute("aria-invalid") == "true"
        assert figure.state["keys"][1] == [0.4, -0.65]
        assert "Type a number" in figure.summary
    field.blur()
    assert field.input_value() == "-0.65"
    figure.reset()
    assert not field.is_visible()
