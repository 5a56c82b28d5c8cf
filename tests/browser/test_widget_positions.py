"""The live figure of positions: worked with mouse, finger and keyboard, its numbers stay the package's."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "positions": [
        ("rotary", "Space"),
        ("letters", "Space"),
        ("First token at", "ArrowRight"),
        ("Play", "Enter"),
        ("Offset n − m", "End"),
        ("Base", "Home"),
    ],
}

MARGIN = 1e-4
LAST, WIDTH, HEADS = 63, 16, 4
OFFSETS = np.arange(-LAST, LAST + 1)
CLOCKS = ["sinusoidal", "rotary"]
SCHEMES = [*CLOCKS, "alibi", "relative"]


def assert_close(got, expected):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=0, atol=MARGIN)


def rows(state, positions):
    """Queries and keys, were each of them at all these positions; and which columns form a pair."""
    columns = np.arange(WIDTH)
    if state["scheme"] == "sinusoidal":
        codes = pf.sinusoidal_positions(positions, WIDTH, base=float(state["base"]))
        return codes, codes, columns.reshape(-1, 2)
    given = (jnp.tile(jnp.asarray(vector, jnp.float32), (len(positions), 1)) for vector in state["vectors"])
    return *(pf.rotate_pairs(each, positions, base=float(state["base"])) for each in given), columns.reshape(2, -1).T


def table(state, positions):
    """What the package gives to each pair of positions: one matrix, or one for each head; a row for each query."""
    if state["scheme"] in CLOCKS:
        queries, keys, _ = rows(state, positions)
        return pf.dot_product_scores(queries, keys)[None]
    if state["scheme"] == "alibi":
        return pf.AlibiPositions(HEADS).bias(positions, positions)
    return pf.relative_buckets(positions[None, :] - positions[:, None])[None]


def check_positions(state):
    """The curves at all offsets, and the bars of the tokens where they stand."""
    n, m, tokens = state["n"], state["m"], len(state["tokens"])
    assert state["offset"] == n - m == state["query"] - state["key"]
    assert n == state["first"] + state["query"]
    assert_close(state["now"], np.asarray(state["curves"])[:, n - m + LAST])
    # All positions that a token can have, so that each scheme is compiled once.
    everywhere = np.asarray(table(state, jnp.arange(2 * LAST + 1)))
    near, far = np.maximum(OFFSETS, 0), np.maximum(-OFFSETS, 0)
    assert_close(state["curves"], everywhere[:, near, far])
    seen = everywhere[:, n, state["first"] : state["first"] + tokens].T
    assert_close(state["bars"], np.exp(seen) if state["scheme"] == "alibi" else seen)
    if state["scheme"] in CLOCKS:
        queries, keys, pairs = rows(state, jnp.arange(2 * LAST + 1))
        assert_close(state["rows"], [queries[n], keys[m]])
        assert_close(state["products"], (queries[n] * keys[m])[pairs].sum(axis=1))
        assert_close(state["score"], queries[n] @ keys[m])


def choose(figure, scheme):
    figure.root.locator(f"input[value={scheme}]").check()
    return figure


def text(value, digits=2):
    words = f"{value:.{digits}f}"
    return words.removeprefix("-") if float(words) == 0 else words.replace("-", "−")


# Sets every control of the figure to given values by script, and returns the numbers that it then publishes.
SET = """(root, states) => states.map(({ scheme, unit, text, first, power, chosen, wanted }) => {
    const set = (input, value) => {
        input.value = value;
        input.dispatchEvent(new Event('input', { bubbles: true }));
    };
    for (const value of [scheme, unit]) {
        const input = root.querySelector(`input[value=${value}]`);
        if (!input.checked) input.click();
    }
    set(root.querySelector('input[type=text]'), text);
    const tile = root.querySelectorAll('.lf-tile input')[chosen];
    if (!tile.checked) tile.click();
    const [place, offset, base] = root.querySelectorAll('input[type=range]');
    set(place, first);
    set(base, power);
    set(offset, wanted);
    return JSON.parse(root.dataset.state);
})"""


def test_positions_numbers_are_those_of_python(shared_figures):
    """Random states: each scheme with words and with letters, places, bases, queries and offsets."""
    random = np.random.default_rng(0)
    wanted = []
    for run in range(8):
        count = int(random.integers(1, 40))
        word = ["ab", "çé", "日本"][run % 3]
        wanted.append(
            {
                "scheme": SCHEMES[run % 4],
                "unit": ["words", "letters"][run // 4],
                "text": " ".join([word] * count) if run // 4 == 0 else (word * count)[:count],
                "first": int(random.integers(LAST + 1)),
                "power": float(random.integers(4, 25) / 4),
                "chosen": int(random.integers(count)),
            }
        )
        wanted[-1]["wanted"] = wanted[-1]["chosen"] - int(random.integers(count))
    for found, want in zip(shared_figures("positions").root.evaluate(SET, wanted), wanted, strict=True):
        assert all(found[name] == want[name] for name in want if name != "chosen")
        assert (found["query"], found["offset"]) == (want["chosen"], want["wanted"])
        assert found["base"] == round(10 ** want["power"])
        check_positions(found)


def test_positions_follow_the_keyboard_and_the_mouse(shared_figures):
    figure = choose(shared_figures("positions"), "relative")
    start = figure.state
    figure.press(figure.control("Offset n − m"), "ArrowRight", "ArrowRight")
    assert (figure.state["n"], figure.state["m"]) == (start["n"], start["m"] - 2)
    figure.press(figure.control("First token at"), "End")
    figure.press(figure.root.locator(".lf-tile input:checked"), "ArrowLeft")
    assert figure.state["first"] == LAST
    assert figure.state["query"] == start["query"] - 1
    check_positions(figure.state)
    figure.press(figure.control("Offset n − m"), "Home")
    assert figure.state["key"] == len(figure.state["tokens"]) - 1
    figure.reset()
    figure.root.locator(".lf-tile").nth(2).click()
    state = figure.state
    assert (state["query"], state["key"], state["offset"]) == (2, 0, 2)  # as far back as there is a token
    figure.root.locator(".lf-tile").nth(9).click()
    assert figure.state["offset"] == 5  # the offset that the reader asked for comes back
    check_positions(figure.state)


def test_positions_moved_together_change_nothing_but_the_hands(shared_figures):
    figure = shared_figures("positions")
    for scheme in SCHEMES:
        before = choose(figure, scheme).state
        figure.press(figure.control("First token at"), *["ArrowRight"] * 5)
        after = figure.state
        assert (after["n"], after["m"]) == (before["n"] + 5, before["m"] + 5)
        for name in {"score", "products", "now", "bars", "curves"} & set(after):
            np.testing.assert_allclose(after[name], before[name], rtol=0, atol=1e-5)
        if scheme in CLOCKS:
            assert np.abs(np.subtract(after["rows"], before["rows"])).max() > 0.5


def test_positions_run_and_pause(shared_figures):
    figure = choose(shared_figures("positions"), "rotary")
    button = figure.root.locator(".lf-play")
    figure.press(button, "Enter")
    figure.until("state.first >= 15")
    button.click()
    paused = figure.state
    check_positions(paused)
    figure.visit.quiet()
    assert figure.state == paused
    figure.press(figure.control("First token at"), "End", "ArrowLeft")
    button.click()
    assert figure.state["first"] == LAST  # where it ends by itself
    assert button.inner_text() == "Play"
    assert figure.clicked(button)["first"] == 0  # and begins anew
    figure.reset()
    assert button.inner_text() == "Play"


def test_positions_step_for_those_who_want_little_to_move(open_figure):
    figure = open_figure("positions", reduced_motion="reduce")
    hand = figure.root.locator(".lf-clocks .lf-turn").first
    assert hand.evaluate("node => getComputedStyle(node).transitionProperty") == "none"
    figure.root.locator(".lf-play").click()
    assert figure.state["first"] == 13  # one step at once, the next after a second
    assert 1000 in figure.page.evaluate("[...window.timers.values()]")


@pytest.mark.parametrize("scheme", CLOCKS)
def test_positions_hands_point_along_their_pairs_and_their_products_are_written_down(shared_figures, scheme):
    figure = choose(shared_figures("positions"), scheme)
    state = figure.state
    shown = figure.root.locator(".lf-clocks > div > div:last-child").all_inner_texts()
    assert shown == [text(value) for value in state["products"]]
    assert figure.root.locator(".lf-total").inner_text() == f"Sum over the pairs: {text(state['score'])}"
    *_, pairs = rows(figure.state, jnp.arange(2 * LAST + 1))
    lengths = []
    for row, which in zip(figure.state["rows"], "nm", strict=True):
        for pair, columns in enumerate(pairs):
            circle = figure.root.locator(".lf-clocks svg").nth(pair).locator(f"circle.lf-{which}")
            length = float(circle.get_attribute("cx"))
            turn = circle.evaluate("node => node.parentNode.style.transform")
            angle = -np.deg2rad(float(turn.removeprefix("rotate(").removesuffix("deg)")))  # drawings count clockwise
            tip = length * np.array([np.cos(angle), np.sin(angle)])
            wanted = np.asarray(row)[columns]
            lengths.append(length / np.hypot(*wanted))
            np.testing.assert_allclose(tip, lengths[-1] * wanted, atol=1e-3)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-4)  # one scale for all
    assert lengths[0] * max(np.hypot(*np.asarray(row)[pairs].T).max() for row in figure.state["rows"]) <= 46.5


def test_positions_base_sets_the_slowest_hand(shared_figures):
    figure = choose(shared_figures("positions"), "rotary")
    curve = figure.state["curves"][0]
    assert np.argmax(curve) - LAST == 5  # they fit best five back
    assert not np.allclose(curve, curve[::-1])  # generic: past and future differ
    figure.press(figure.control("Base"), "Home")
    assert figure.state["base"] == 10
    check_positions(figure.state)
    choose(figure, "alibi")
    assert not figure.control("Base").is_visible()  # it has none


def test_positions_bars_stand_under_the_tokens(shared_figures):
    figure = shared_figures("positions")
    tiles = figure.root.locator(".lf-tile")
    assert tiles.locator("bdi").all_inner_texts() == figure.state["tokens"] == figure.state["text"].split()
    assert tiles.locator("> span:nth-child(2)").all_inner_texts() == [str(12 + i) for i in range(13)]
    assert tiles.locator("> span:last-child").all_inner_texts() == [text(bar[0], 1) for bar in figure.state["bars"]]
    heights = [float(tiles.nth(i).locator("i").evaluate("node => parseFloat(node.style.height)")) for i in range(13)]
    np.testing.assert_allclose(
        heights, 100 * np.array(figure.state["bars"])[:, 0] / 8, atol=1e-3
    )  # all of them positive
    choose(figure, "relative")
    assert tiles.locator("> span:last-child").all_inner_texts() == [str(bar[0]) for bar in figure.state["bars"]]
    assert "Offsets in bucket 5: 5." in figure.root.inner_text()
    choose(figure, "alibi")
    assert tiles.first.locator("i").count() == HEADS
    factors = [text(value) for value in figure.state["bars"][0]]
    assert tiles.first.get_attribute("title") == ", ".join(factors)


@pytest.mark.parametrize(
    ("unit", "tokens"),
    [
        ("words", ["x" * 24 + "…", "שלום", "👩‍👩‍👧‍👦"]),
        ("letters", [*"x" * 30, "␣", *"שלום", "␣", "👩‍👩‍👧‍👦"]),
    ],
)
def test_positions_cut_any_text_into_tokens(shared_figures, unit, tokens):
    figure = choose(shared_figures("positions"), unit)
    field = figure.root.locator("input[type=text]")
    field.fill("x" * 30 + " שלום 👩‍👩‍👧‍👦")
    assert figure.state["tokens"] == tokens
    check_positions(figure.state)
    field.fill("ab " * 3000)
    assert len(figure.state["tokens"]) == LAST + 1
    assert len(field.input_value()) <= 400
