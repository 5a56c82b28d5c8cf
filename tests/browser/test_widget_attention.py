"""The live figures of attention: worked with mouse, touch and keyboard, their numbers stay the package's."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

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


def test_notation_shows_one_convention_alone(shared_figures):
    figure = shared_figures("notation")
    figure.root.get_by_label("tokens as columns").check()
    assert [panel.is_visible() for panel in figure.root.locator(".lf-panel").all()] == [False, True]


# --- attention of one query ------------------------------------------------------------------------------------------


def check_attention(state):
    query, keys, values = (array(state[name]) for name in ("query", "keys", "values"))
    mask = jnp.asarray(state["mask"])[None]
    assert_close(state["products"], pf.dot_product_scores(query[None], keys)[0])
    assert_close(state["scores"], pf.scaled_scores(query[None], keys, scale=state["scale"])[0])
    assert_close(state["weights"], pf.attention_weights(query[None], keys, mask, scale=state["scale"])[0])
    assert_close(state["output"], pf.attend(query[None], keys, values, mask, scale=state["scale"])[0])


def test_attention_starts_at_the_usual_scale(shared_figures):
    state = shared_figures("attention").state
    check_attention(state)
    query, keys, values = (array(state[name]) for name in ("query", "keys", "values"))
    assert_close(state["output"], pf.attend(query[None], keys, values)[0])


def test_attention_follows_the_keyboard(shared_figures):
    figure = shared_figures("attention")
    x, y = figure.state["query"]
    handle = figure.root.get_by_role("slider", name="Query q")
    figure.press(handle, "ArrowLeft", "ArrowLeft", "Shift+ArrowUp")
    assert_close(figure.state["query"], [x - 0.2, y + 0.5])
    check_attention(figure.state)
    assert f"{x - 0.2:.2f} to the right" in handle.get_attribute("aria-valuetext")
    figure.press(handle, *["Shift+ArrowRight"] * 12)
    assert figure.state["query"][0] == pytest.approx(2.4)  # no further than the edge
    check_attention(figure.state)


def centre(figure):
    box = figure.root.locator(".lf-handle circle").last.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_attention_follows_the_mouse(shared_figures):
    figure = shared_figures("attention")
    before = figure.state["query"]
    x, y = centre(figure)
    mouse = figure.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x - 60, y + 50, steps=4)
    mouse.up()
    np.testing.assert_allclose(centre(figure), (x - 60, y + 50), atol=1)  # it stays under the pointer
    after = figure.state["query"]
    assert after[0] < before[0]
    assert after[1] < before[1]
    check_attention(figure.state)
    mouse.move(x, y)  # released: it stays where it is
    assert figure.state["query"] == after
    figure.reset()
    assert figure.state["query"] == before


def test_attention_follows_a_finger(open_figure):
    figure = open_figure("attention", has_touch=True, viewport={"width": 390, "height": 800})
    figure.root.locator(".lf-handle").scroll_into_view_if_needed()
    before = figure.state["query"]
    x, y = centre(figure)
    finger = figure.visit.context.new_cdp_session(figure.page)
    for kind, points in [
        ("touchStart", [(x, y)]),
        ("touchMove", [(x - 20, y - 25)]),
        ("touchMove", [(x - 40, y - 50)]),
        ("touchEnd", []),
    ]:
        finger.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": px, "y": py} for px, py in points]}
        )
    figure.page.wait_for_timeout(100)
    assert figure.state["query"][0] < before[0]
    assert figure.state["query"][1] > before[1]
    check_attention(figure.state)


def test_attention_scale_runs_from_even_to_hard(shared_figures):
    figure = shared_figures("attention")
    scale = figure.control("Score multiplier")
    figure.press(scale, "Home")
    check_attention(figure.state)
    assert max(figure.state["weights"]) < 0.3
    figure.press(scale, "End")
    check_attention(figure.state)
    assert max(figure.state["weights"]) > 0.99


def test_attention_hides_tokens(shared_figures):
    figure = shared_figures("attention")
    boxes = figure.root.get_by_role("checkbox").all()
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
    assert "zero vector" in figure.summary


# --- several heads ---------------------------------------------------------------------------------------------------


def check_heads(state):
    x, query, key, value = (array(state[name]) for name in ("x", "queryWeights", "keyWeights", "valueWeights"))
    on = array(state["on"])[:, None, None]
    output = array(state["outputWeights"]) * on
    expected = pf.multi_head_sum(x, query, key, value, output)
    assert_close(state["sumForm"], expected)
    assert_close(state["concatForm"], pf.multi_head_concat(x, query, key, value, output))
    for head, weights in enumerate(state["weights"]):
        assert_close(weights, pf.attention_weights(x @ query[head], x @ key[head]))
        alone = output * array(np.eye(len(on))[head])[:, None, None]
        assert_close(state["contributions"][head], pf.multi_head_sum(x, query, key, value, alone))
    heads = jnp.stack([pf.attend(x @ query[h], x @ key[h], x @ value[h]) for h in range(len(on))]) * on
    assert_close(state["concatenated"], pf.merge_heads(heads))
    assert state["difference"] < MARGIN


def test_heads_numbers_are_those_of_python(shared_figures):
    figure = shared_figures("heads")
    check_heads(figure.state)
    figure.root.get_by_role("button", name="Head 1").click()
    figure.press(figure.root.get_by_role("button", name="Head 3"), "Enter")
    assert figure.state["on"] == [False, True, False]
    check_heads(figure.state)
    figure.root.get_by_role("button", name="Head 2").click()
    assert not np.any(figure.state["sumForm"])
    check_heads(figure.state)


def test_heads_two_forms_show_the_same_output(shared_figures):
    figure = shared_figures("heads")
    figure.root.get_by_label("bird", exact=True).check()
    figure.root.get_by_role("button", name="Head 2").click()
    shown = [figure.root.locator("table").last.locator("td.lf-cell").all_inner_texts()]
    figure.press(figure.root.get_by_label("concatenate, then project"), "ArrowRight")
    assert figure.state["form"] == "sum"
    shown.append(figure.root.locator("table").last.locator("td.lf-cell").all_inner_texts())
    assert shown[0] == shown[1] == [f"{value:.2f}".replace("-", "−") for value in figure.state["sumForm"][4]]


def test_heads_toy_matrices_are_generic(shared_figures):
    """Full rank and mixed signs: no accident of the numbers hides a swapped axis."""
    state = shared_figures("heads").state
    for name in ("queryWeights", "keyWeights", "valueWeights", "outputWeights"):
        for matrix in np.array(state[name]):
            assert np.linalg.matrix_rank(matrix) == 2
            assert matrix.min() < 0 < matrix.max()
    assert np.linalg.matrix_rank(np.array(state["x"])) == 5
