"""One palette in schematics, plots, live figures and the site: `_static/look.css` has it, light and dark."""

import re

import matplotlib
import pytest
from book import ROOT

from drawings.draw import drawn
from drawings.sketch import COLOURS, INK, SOFT

STYLE = (ROOT / "_static" / "look.css").read_text("utf-8")
WIDGETS = (ROOT / "widgets" / "widgets.css").read_text("utf-8")
SAME = ["ink", "soft", "paper", "panel", "line", "strong", "mark", "mark-wash", "accent", "stream", "marked"]
HUES = ["queries", "keys", "values", "weights", "norm"]


def properties(style: str, prefix: str) -> list[dict[str, str]]:
    """The colours by name, first those of the light page, then those of the dark one."""
    found: list[dict[str, str]] = [{}, {}]
    for name, colour in re.findall(rf"--{prefix}-([a-z0-9-]+): (#[0-9a-f]{{6}})\b", style):
        found[name in found[0]][name] = colour
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_schematics_have_the_colours_of_the_site():
    light, _ = properties(STYLE, "pf")
    assert (light["ink"], light["soft"]) == (INK, SOFT)
    for kind, (outline, ground) in COLOURS.items():
        if kind not in ("plain", "three"):  # the one is grey, the other the same as `marked`
            assert (light[kind], light[f"{kind}-wash"]) == (outline, ground), kind
    used = {colour for text in drawn().values() for colour in re.findall(r"#[0-9a-f]{6}", text)}
    assert used <= set(light.values())


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_live_figures_have_the_colours_of_the_site(mode):
    site, figures = properties(STYLE, "pf")[mode], properties(WIDGETS, "lf")[mode]
    assert {name: figures[name] for name in SAME} == {name: site[name] for name in SAME}
    assert [figures[f"hue-{n}"] for n in range(1, 6)] == [site[name] for name in HUES]


def test_plots_have_the_colours_of_the_site():
    style = matplotlib.rc_params_from_file(ROOT / "chapters" / "matplotlibrc", use_default_template=False)
    light, _ = properties(STYLE, "pf")
    cycle = ["#" + colour.lstrip("#") for colour in style["axes.prop_cycle"].by_key()["color"]]
    assert {light[name] for name in ("queries", "values", "weights", "four")} <= set(cycle)
    for setting, name in {"text.color": "ink", "axes.labelcolor": "ink", "axes.edgecolor": "soft"}.items():
        assert "#" + style[setting].lstrip("#") == light[name]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_each_colour_reads_on_its_ground(mode):
    """Text against the page, its panels and the wash of its own kind: at least 4.5 to 1."""
    colours = properties(STYLE, "pf")[mode]
    poor = {}
    for name, colour in colours.items():
        if not name.endswith(("wash", "paper", "panel", "line", "strong")):  # `strong` outlines, and is no text
            grounds = [colours[ground] for ground in ("paper", "panel", f"{name}-wash") if ground in colours]
            poor |= {(name, ground): contrast(colour, ground) for ground in grounds if contrast(colour, ground) < 4.5}
    assert poor == {}
