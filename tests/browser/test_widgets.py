"""The live figures: each can be worked with mouse, touch and keyboard, and its numbers are the package's."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

NAMES = ["notation", "bpe", "attention", "heads"]
MARGIN = 1e-4

# One control of each figure with keys that change something.
CHANGES = {
    "notation": [("slip: softmax", "Space")],
    "bpe": [("Merges", "End")],
    "attention": [("Query q", "ArrowUp"), ("Score multiplier", "ArrowRight"), ("May attend to token 2", "Space")],
    "heads": [("Head 2", "Space")],
}


def array(numbers):
    return jnp.asarray(numbers, dtype=jnp.float32)


def assert_close(got, wanted):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=0, atol=MARGIN)


def control(figure, name: str):
    """The control of that name, whatever kind it is."""
    kinds = [figure.root.get_by_label(name), figure.root.get_by_role("button", name=name)]
    return kinds[0].or_(kinds[1]).first


# --- what holds for all of them -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_reset_undoes_every_change(shared_figures, name):
    figure = shared_figures(name)
    start, words = figure.state, figure.summary
    for label, keys in CHANGES[name]:
        figure.press(control(figure, label), keys)
        assert figure.state != start
        figure.reset()
        assert figure.state == start
    assert figure.summary == words


@pytest.mark.parametrize("name", NAMES)
def test_summary_says_what_changed(shared_figures, name):
    figure = shared_figures(name)
    before = figure.summary
    for label, keys in CHANGES[name]:
        figure.press(control(figure, label), keys)
    assert before != figure.summary != ""
    assert figure.root.locator("[aria-live=polite]").count() == 1


@pytest.mark.parametrize("name", NAMES)
def test_tab_reaches_every_control(shared_figures, name):
    """Radio buttons of one name are one stop, as everywhere."""
    figure = shared_figures(name)
    stops = figure.root.evaluate("""root => {
        const isShown = (node) => node.offsetParent !== null || node instanceof SVGElement;
        const all = [...root.querySelectorAll('input, button, [tabindex="0"]')].filter(isShown);
        all.forEach((node, i) => { node.dataset.stop = node.type === 'radio' ? node.name : i; });
        return [...new Set(all.map((node) => node.dataset.stop))];
    }""")
    seen = set()
    figure.root.locator("[data-stop]").first.focus()
    for _ in range(len(stops) + 1):
        seen.add(figure.page.evaluate("document.activeElement.dataset.stop"))
        figure.page.keyboard.press("Tab")
    assert set(stops) <= seen


@pytest.mark.parametrize("name", NAMES)
def test_figure_fits_a_phone(open_figure, name):
    figure = open_figure(name, viewport={"width": 360, "height": 800})
    outside = figure.root.evaluate("""root => {
        const edge = root.getBoundingClientRect().right;
        const isCut = (node) => node.matches('.lf-table') && node.scrollWidth > node.clientWidth;
        const all = [...root.querySelectorAll('*')];
        return all.filter((node) => node.getBoundingClientRect().right > edge + 1 || isCut(node)).map(String);
    }""")
    assert outside == []
    small = figure.root.evaluate("""root => {
        const isSmall = (node) => node.firstChild?.nodeType === 3 && parseFloat(getComputedStyle(node).fontSize) < 11;
        return [...root.querySelectorAll('*')].filter(isSmall).map((node) => node.textContent);
    }""")
    assert small == []


def test_figures_keep_still_for_those_who_ask(open_figure):
    figure = open_figure("attention", reduced_motion="reduce")
    assert figure.root.locator(".lf-bar").first.evaluate("node => getComputedStyle(node).transitionProperty") == "none"


# --- notation -----------------------------------------------------------------------------------------------


def check_notation(state):
    x = array(state["rows"]["x"])
    queries, keys = x @ array(state["queryWeight"]), x @ array(state["keyWeight"])
    scores = pf.scaled_scores(queries, keys)
    weights = pf.softmax(scores.T).T if state["wrongAxis"] else pf.softmax(scores)
    for name, wanted in {"x": x, "scores": scores, "weights": weights, "output": weights @ x}.items():
        assert_close(state["rows"][name], wanted)
        assert_close(state["columns"][name], wanted.T)


def test_notation_numbers_are_those_of_python(shared_figures):
    figure = shared_figures("notation")
    check_notation(figure.state)
    assert not figure.state["wrongAxis"]
    control(figure, "slip: softmax").check()
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
    control(figure, "slip: softmax").check()
    assert figure.root.locator(".lf-one").count() == 0
    assert figure.root.locator(".lf-not-one").count() == 6


def test_notation_shows_one_convention_alone(shared_figures):
    figure = shared_figures("notation")
    figure.root.get_by_label("tokens as columns").check()
    assert [panel.is_visible() for panel in figure.root.locator(".lf-panel").all()] == [False, True]


# --- byte-pair encoding -------------------------------------------------------------------------------------

TEXTS = [
    "low lower lowest newer newest wider widest",
    "aaaa aaaaa aaaaaaa aa",
    "Größe, größer, am größten: 12 Straßen & 123 Flüße",
    "it's they're we've I'll don't 'tis",
    "注意力 注意 注意力机制 意力",
    "👩‍👩‍👧 👩‍👧 e\u0301e\u0301 é  two  spaces   three \u3000\u00a0x\u0085y\ufeffz ",
]


def check_bpe(state):
    from plainformer.bpe import BytePairEncoder

    encoder = BytePairEncoder.train(state["text"], 256 + state["applied"])
    assert [tuple(pair) for pair in state["merges"]] == list(encoder.merges)
    assert state["ids"] == encoder.encode(state["text"])
    assert state["vocabulary"] == len(encoder)
    assert state["bytes"] == len(state["text"].encode())
    assert state["tokens"] == len(state["ids"])
    spelling = {number: token for token, number in encoder.vocabulary.items()}
    assert state["spelled"] == [spelling[number] for number in state["ids"]]
    if state["next"]:
        another = BytePairEncoder.train(state["text"], 257 + state["applied"])
        assert tuple(state["next"]["pair"]) == another.merges[-1]


@pytest.mark.parametrize("text", TEXTS)
def test_bpe_merges_are_those_of_python(shared_figures, text):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill(text)
    assert figure.state["text"] == text
    check_bpe(figure.state)
    merges = figure.root.get_by_label("Merges", exact=True)
    figure.press(merges, "End")
    assert figure.state["next"] is None
    check_bpe(figure.state)
    figure.press(merges, "Home", "ArrowRight", "ArrowRight")
    assert figure.state["applied"] == min(2, int(merges.get_attribute("max")))
    check_bpe(figure.state)


def test_bpe_steps_one_merge_at_a_time(shared_figures):
    figure = shared_figures("bpe")
    start = figure.state
    button = figure.root.get_by_role("button", name="Merge one")
    button.click()
    figure.press(button, "Enter")
    assert figure.state["applied"] == start["applied"] + 2
    assert figure.state["merges"][start["applied"]] == start["next"]["pair"]
    for _ in range(2):
        figure.root.get_by_role("button", name="Undo one").click()
    assert figure.state == start


def test_bpe_shows_what_is_typed_and_never_runs_it(shared_figures):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill("<img src=x onerror=alert(1)>")
    check_bpe(figure.state)
    assert figure.root.locator("img").count() == 0
    chips = figure.root.locator(".lf-word .lf-chip").all_inner_texts()
    assert "".join(chips).replace("␣", " ") == "<img src=x onerror=alert(1)>"


def test_bpe_with_nothing_to_encode(shared_figures):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill("")
    assert (figure.state["tokens"], figure.state["merges"]) == (0, [])
    assert figure.summary == "Type a text."
    figure.press(figure.root.get_by_role("button", name="Merge one"), "Enter")
    assert figure.state["applied"] == 0


def test_bpe_spells_as_the_files_do(shared_figures):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill("a é")
    figure.press(figure.root.get_by_label("Merges", exact=True), "Home")
    chips = figure.root.locator(".lf-word .lf-chip")
    assert chips.all_inner_texts() == ["a", "␣", "C3", "A9"]
    control(figure, "spell tokens").check()
    assert chips.all_inner_texts() == ["a", "Ġ", "Ã", "©"]


# --- attention of one query ---------------------------------------------------------------------------------


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
    scale = control(figure, "Score multiplier")
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


# --- several heads ------------------------------------------------------------------------------------------


def check_heads(state):
    x, query, key, value = (array(state[name]) for name in ("x", "queryWeights", "keyWeights", "valueWeights"))
    on = array(state["on"])[:, None, None]
    output = array(state["outputWeights"]) * on
    wanted = pf.multi_head_sum(x, query, key, value, output)
    assert_close(state["sumForm"], wanted)
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
