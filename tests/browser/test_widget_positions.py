"""The live figure of positions: worked with mouse and keyboard, its numbers stay the package's."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

MARGIN = 1e-4
LAST, WIDTH, HEADS = 63, 16, 4
POSITIONS = jnp.arange(LAST + 1)
CLOCKS = ["sinusoidal", "rotary"]
SCHEMES = [*CLOCKS, "alibi", "relative"]


def assert_close(got, expected):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=0, atol=MARGIN)


def assert_offset_decides(curve, table):
    """At every query and key, the number of the pair is the curve's number at their offset."""
    n, m = np.indices((LAST + 1, LAST + 1))
    assert_close(np.asarray(curve)[n - m + LAST], table)


def rows(state, positions):
    """The rows of the query and of the key, were each of them at all these positions; and which columns form a pair."""
    columns = np.arange(WIDTH)
    if state["scheme"] == "sinusoidal":
        codes = pf.sinusoidal_positions(positions, WIDTH)
        return codes, codes, columns.reshape(-1, 2)
    queries, keys = (jnp.tile(jnp.asarray(state[name]), (len(positions), 1)) for name in ("query", "key"))
    return *(pf.rotate_pairs(each, positions) for each in (queries, keys)), columns.reshape(2, -1).T


def check_clocks(state):
    queries, keys, pairs = rows(state, POSITIONS)
    query, key = queries[state["n"]], keys[state["m"]]
    assert_close(state["rows"], [query, key])
    assert_close(state["products"], (query * key)[pairs].sum(axis=1))
    assert_close(state["score"], query @ key)
    assert_offset_decides(state["curve"], queries @ keys.T)


def check_alibi(state):
    bias = pf.AlibiPositions(HEADS).bias(POSITIONS, POSITIONS)
    assert_close(state["slopes"], pf.alibi_slopes(HEADS))
    assert_close(state["bias"], bias[:, state["n"], state["m"]])
    for curve, table in zip(state["curves"], bias, strict=True):
        assert_offset_decides(curve, table)


def check_relative(state):
    buckets = pf.relative_buckets(POSITIONS[None, :] - POSITIONS[:, None])
    assert state["bucket"] == buckets[state["n"], state["m"]]
    assert_offset_decides(state["buckets"], buckets)
    offsets = np.arange(-LAST, LAST + 1)
    assert state["sharing"] == list(offsets[np.array(state["buckets"]) == state["bucket"]])


CHECKS = {"sinusoidal": check_clocks, "rotary": check_clocks, "alibi": check_alibi, "relative": check_relative}


def check_positions(state):
    assert state["offset"] == state["n"] - state["m"]
    CHECKS[state["scheme"]](state)


def choose(figure, scheme):
    figure.root.locator(f"input[value={scheme}]").check()
    return figure


def text(value):
    digits = f"{value:.2f}"
    return digits.removeprefix("-") if float(digits) == 0 else digits.replace("-", "−")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_positions_follow_the_keyboard(shared_figures, scheme):
    figure = choose(shared_figures("positions"), scheme)
    start = figure.state
    check_positions(start)
    figure.press(figure.control("Query at n"), *["ArrowRight"] * 3)
    figure.press(figure.control("Key at m"), "Home", "ArrowRight")
    assert (figure.state["n"], figure.state["m"]) == (start["n"] + 3, 1)
    check_positions(figure.state)
    figure.press(figure.control("Key at m"), "End")
    assert figure.state["offset"] < 0
    check_positions(figure.state)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_positions_follow_the_mouse(shared_figures, scheme):
    figure = choose(shared_figures("positions"), scheme)
    box = figure.control("Query at n").bounding_box()
    figure.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    assert (figure.state["n"], figure.state["m"]) == (LAST, 12)
    check_positions(figure.state)
    figure.reset()
    assert figure.state["scheme"] == "sinusoidal"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_positions_moved_together_change_nothing_but_the_hands(shared_figures, scheme):
    figure = choose(shared_figures("positions"), scheme)
    before = figure.state
    both = figure.control("Move both")
    figure.press(both, *["ArrowRight"] * 5)
    after = figure.state
    assert (after["n"], after["m"]) == (before["n"] + 5, before["m"] + 5)
    box = both.bounding_box()
    figure.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    far = figure.state
    assert (far["n"], far["m"]) == (LAST, LAST - before["offset"])
    for state in (after, far):
        check_positions(state)
        for name in {"score", "products", "bias", "bucket", "sharing", "curve", "offset"} & set(state):
            np.testing.assert_allclose(state[name], before[name], rtol=0, atol=1e-9)
    if scheme in CLOCKS:
        assert np.abs(np.subtract(far["rows"], before["rows"])).max() > 0.5


def test_positions_at_both_ends_leave_nowhere_to_move(shared_figures):
    figure = shared_figures("positions")
    figure.press(figure.control("Query at n"), "End")
    figure.press(figure.control("Key at m"), "Home")
    figure.press(figure.control("Move both"), "ArrowRight", "ArrowLeft")
    assert (figure.state["n"], figure.state["m"]) == (LAST, 0)
    check_positions(figure.state)


@pytest.mark.parametrize("scheme", CLOCKS)
def test_positions_write_down_what_each_pair_adds(shared_figures, scheme):
    figure = choose(shared_figures("positions"), scheme)
    state = figure.state
    shown = figure.root.locator(".lf-clocks > div > div:last-child").all_inner_texts()
    assert shown == [text(value) for value in state["products"]]
    assert figure.root.locator(".lf-total").inner_text() == f"Sum over the pairs: {text(state['score'])}"
    assert text(state["score"]) in figure.summary


def tip(figure, pair, which):
    """Where a hand points, with up as the second coordinate, in units of the clock's own drawing."""
    circle = figure.root.locator(".lf-clocks svg").nth(pair).locator(f"circle.lf-{which}")
    return np.array([float(circle.get_attribute("cx")), -float(circle.get_attribute("cy"))])


@pytest.mark.parametrize("scheme", CLOCKS)
def test_positions_hands_point_along_their_pairs(shared_figures, scheme):
    figure = choose(shared_figures("positions"), scheme)
    *_, pairs = rows(figure.state, POSITIONS)
    lengths = []
    for row, which in zip(figure.state["rows"], "nm", strict=True):
        for pair, columns in enumerate(pairs):
            pointing, expected = tip(figure, pair, which), np.array(row)[columns]
            lengths.append(np.hypot(*pointing) / np.hypot(*expected))
            assert_close(pointing / np.hypot(*pointing), expected / np.hypot(*expected))
    assert_close(lengths, lengths[0])  # one scale for all


def test_positions_rotary_example_fits_best_five_back(shared_figures):
    state = choose(shared_figures("positions"), "rotary").state
    assert np.argmax(state["curve"]) - LAST == 5
    assert not np.allclose(state["curve"], state["curve"][::-1])  # generic: past and future differ


def test_positions_tables_show_the_present_pair(shared_figures):
    figure = choose(shared_figures("positions"), "alibi")
    table = figure.root.locator("table:visible tbody tr")
    slopes, biases, factors = (table.locator(f"td:nth-child({column})").all_inner_texts() for column in (2, 3, 4))
    assert slopes == ["1/4", "1/16", "1/64", "1/256"]
    np.testing.assert_allclose([float(bias.replace("−", "-")) for bias in biases], figure.state["bias"], atol=5.1e-4)
    np.testing.assert_allclose([float(factor) for factor in factors], np.exp(figure.state["bias"]), rtol=6e-3)
    choose(figure, "relative")
    assert figure.root.locator("dd:visible").all_inner_texts() == ["8", "8 to 11", "4"]
