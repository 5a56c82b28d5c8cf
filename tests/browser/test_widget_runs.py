"""The live figure that replays training runs shows the recorded losses, and plays them."""

import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "runs": [("post-norm", "Space"), ("200 steps", "Space"), ("Up to step", "End")],
}

RUNS = pf.data.load_record("blocks")["runs"]
KINDS = {"pre": ("pre", False), "post": ("post", False), "small": ("post", True)}


def recorded(placement, is_small, rate, warmup):
    for run in RUNS:
        if (run["placement"], run["is_small"], run["learning_rate"], run["warmup_steps"]) == (
            placement,
            is_small,
            rate,
            warmup,
        ):
            return run
    return None


def check(state):
    assert list(state["losses"]) == [name for name in KINDS if state[name]]
    for name, losses in state["losses"].items():
        run = recorded(*KINDS[name], state["rate"], state["warmup"])
        curves = run["curves"] if run else []
        wanted = [curve[: state["step"] // 10] for curve in curves]
        assert losses == (wanted if state["seed"] == "all" else wanted[state["seed"] : state["seed"] + 1])


@pytest.mark.parametrize(("rate", "warmup"), [("0.001", "200 steps"), ("0.003", "none")])
def test_runs_are_the_recorded_ones(shared_figures, rate, warmup):
    figure = shared_figures("runs")
    figure.control("smaller").check()
    for label in (rate, warmup):
        figure.root.get_by_label(label, exact=True).check()
    check(figure.state)
    assert ("was recorded at 0.003" in figure.summary) == (rate != "0.003")
    figure.press(figure.control("Up to step"), "End")
    figure.root.get_by_label("1", exact=True).check()
    check(figure.state)
    run = recorded("post", False, float(rate), figure.state["warmup"])
    assert f"post-norm {run['curves'][1][-1]:.2f}, held out {run['validation'][1]:.2f}" in figure.summary
    figure.control("pre-norm").uncheck()
    check(figure.state)


def test_runs_play_stop_and_begin_anew(shared_figures):
    figure = shared_figures("runs")
    figure.press(figure.control("Play"), "Enter")
    figure.until("state.step >= 300")
    figure.press(figure.control("Pause"), "Space")
    step = figure.state["step"]
    check(figure.state)
    figure.visit.quiet()
    assert figure.state["step"] == step
    figure.press(figure.control("Up to step"), "End")
    figure.control("Play again").click()
    assert figure.state["step"] < 500
    figure.control("Pause").click()


def test_runs_leap_for_those_who_want_little_motion(open_figure):
    figure = open_figure("runs", reduced_motion="reduce")
    seen = figure.root.evaluate("""async (root) => {
        const steps = new Set();
        new MutationObserver(() => steps.add(JSON.parse(root.dataset.state).step)).observe(root, { attributes: true });
        [...root.querySelectorAll('button')].find((button) => button.textContent === 'Play').click();
        while (JSON.parse(root.dataset.state).playing) await nextFrame();
        return [...steps];
    }""")
    assert seen[-1] == 1000
    assert (np.diff(seen) % 100 == 0).all()
