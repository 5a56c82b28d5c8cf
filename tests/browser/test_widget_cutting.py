"""The live figure of several devices: what each device holds, step by step, beside the package's product in parts."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {"cutting": [("Step", "End"), ("Look at device", "ArrowRight"), ("columns of W", "Space"), ("8", "Space")]}

SIZE = 8
COLLECTIVES = {"rows": [], "columns": ["all-gather"], "summed": ["all-reduce"], "gathered": ["all-gather"]}


def summands_of(state, parts):
    """The sum of the parts that the figure says are in each number, and where there is none."""
    empty = np.array([[not who for who in line] for line in state["summands"]])
    sums = [[sum((float(parts[d][i, j]) for d in who), 0.0) for j, who in enumerate(line)]
            for i, line in enumerate(state["summands"])]  # fmt: skip
    return np.array(sums), empty


def check(state):
    x, weight = (jnp.asarray(state[name], jnp.float32) for name in ("x", "weight"))
    shown = np.array([[np.nan if value is None else value for value in line] for line in state["product"]])
    parts = pf.training.cut_product(x, weight, state["devices"], "summed")
    sums, empty = summands_of(state, parts)
    np.testing.assert_array_equal(np.isnan(shown), empty)
    np.testing.assert_allclose(shown[~empty], sums[~empty], atol=1e-4)
    each = [pf.training.collective_bytes(name, 4 * SIZE**2, state["devices"]) for name in COLLECTIVES[state["cut"]]]
    assert state["inTheEnd"] == sum(each)


def choose(figure, legend, label):
    figure.root.get_by_role("group", name=legend).get_by_label(label, exact=True).check()


@pytest.mark.parametrize(
    ("label", "cut", "devices"),
    [
        ("rows of X", "rows", 4),
        ("columns of W", "columns", 8),
        ("the summed axis", "summed", 4),
        ("weights gathered", "gathered", 2),
    ],
)
def test_cutting_goes_step_by_step_to_the_product(shared_figures, label, cut, devices):
    figure = shared_figures("cutting")
    choose(figure, "Cut", label)
    choose(figure, "Devices", str(devices))
    figure.press(figure.control("Look at device"), "End", "ArrowLeft")
    device, step = devices - 2, figure.control("Step")
    figure.press(step, "Home")
    sent, last = [], int(step.get_attribute("max"))
    for now in range(last + 1):
        state = figure.state
        assert (state["cut"], state["devices"], state["device"], state["step"]) == (cut, devices, device, now)
        check(state)
        sent.append(state["sent"])
        figure.press(step, "ArrowRight")
    steps = np.diff(sent)
    assert set(steps) <= {0, 4 * SIZE**2 / devices}
    assert np.count_nonzero(steps) == last - 1
    state = figure.state
    assert state["sent"] == state["inTheEnd"]
    whole = np.array(state["x"]) @ np.array(state["weight"])
    if cut in ("rows", "gathered"):
        whole = whole[device * SIZE // devices : (device + 1) * SIZE // devices]
    shown = np.array(state["product"], float)
    np.testing.assert_allclose(shown[np.isfinite(shown)].reshape(whole.shape), whole, atol=1e-4)
    cells = figure.root.locator("table").nth(2).locator("td.lf-cell").all_inner_texts()
    assert [int(text.replace("−", "-")) for text in cells if text.strip()] == whole.reshape(-1).tolist()


def test_cutting_says_who_sends_what(shared_figures):
    """After a round of the ring, what a device has is what its neighbour had and sent."""
    figure = shared_figures("cutting")
    step, device = figure.control("Step"), figure.control("Look at device")
    figure.press(step, "Home", "ArrowRight", "ArrowRight")
    assert figure.state["sending"] == [0, 1, 2, 3]
    figure.press(device, "ArrowRight")
    rows = figure.state["summands"]
    assert sorted(rows[0][0]) == [0, 1], "device 1 got piece 0 from device 0"
    assert rows[2][0] == rows[7][7] == [1]
    assert "sent 64 bytes of 384" in figure.summary


def test_cutting_follows_mouse_and_touch(shared_figures):
    figure = shared_figures("cutting")
    figure.root.locator("svg g").nth(2).click()
    assert figure.state["device"] == 2
    play = figure.root.get_by_role("button", name="Play")
    play.click()
    figure.root.get_by_role("button", name="Play").wait_for()  # it stops by itself at the end
    assert figure.state["step"] == 7
    assert figure.state["sent"] == figure.state["inTheEnd"] == 384
