"""The live figure of preferences shows the recorded runs, and marks what cannot be."""

import numpy as np

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {"preferring": [("Price of a nat", "End"), ("Price of a nat", "Home")]}

RECORD = pf.data.load_record("preferring")


def check(state):
    if state["times"] == 5:
        runs = [RECORD["longer"][f"{state['beta']:g}"]] if f"{state['beta']:g}" in RECORD["longer"] else []
    else:
        runs = RECORD["betas"][f"{state['beta']:g}"]
    if not runs:
        assert state["run"] is None
        return
    for name in ("reward", "leash", "possible"):
        np.testing.assert_allclose(state["run"][name], np.mean([run[name] for run in runs]), atol=1e-4)
    shown = [" ".join(said for said, _ in text["sentences"]) for text in state["run"]["texts"]]
    assert shown == runs[0]["texts"]


def test_preferring_shows_the_recorded_runs(shared_figures):
    figure = shared_figures("preferring")
    check(figure.state)
    figure.press(figure.control("Price of a nat"), "Home")
    check(figure.state)
    assert figure.root.locator(".lf-told s").count() > 3  # what too long a leash makes of stories
    figure.root.get_by_label("750", exact=True).check()
    check(figure.state)
    assert "were recorded" in figure.summary
    figure.press(figure.control("Price of a nat"), "ArrowRight", "ArrowRight")
    check(figure.state)
    assert figure.state["run"]["beta"] == 0.1
    figure.press(figure.control("Price of a nat"), "End")
    check(figure.state)


def test_names_of_curves_stand_right_of_the_axis_and_on_no_other_curve(shared_figures):
    figure = shared_figures("preferring")
    axis = figure.root.locator(".lf-frame").evaluate("node => node.getBoundingClientRect().left")
    names = figure.root.locator("svg .lf-halo").evaluate_all("""nodes => nodes.map((node) => {
        const { left, right, top, bottom } = node.getBoundingClientRect();
        return [left, right, top, bottom];
    })""")
    assert len(names) == 3
    assert min(left for left, *_ in names) > axis
    points = figure.root.locator("svg .lf-curve").evaluate_all("""curves => curves.flatMap((curve) =>
        Array.from({ length: 400 }, (_, i) => {
            const at = curve.getPointAtLength((i / 399) * curve.getTotalLength()).matrixTransform(curve.getScreenCTM());
            return [at.x, at.y];
        }))""")
    for left, right, top, bottom in names:
        middle = (top + bottom) / 2, (bottom - top) / 4  # of the letters' box, without what stands above and below them
        assert not [(x, y) for x, y in points if left < x < right and abs(y - middle[0]) < middle[1]]
