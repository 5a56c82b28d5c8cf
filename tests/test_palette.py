"""One palette in schematics, plots, live figures and the site: `_static/look.css` has it, light and dark."""

import ast
import colorsys
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


# What the figures show that has a colour in the schematics, and the parts of the style, or the modules, that draw it.
KINDS = {
    "weights": [r"\.lf \.lf-arc \{[^}]*", r"svg\.lf-curves \{[^}]*", r"\.lf-washed \{[^}]*"],
    "stream": [r"\.lf-wire\.lf-rail \{[^}]*"],
}


@pytest.mark.parametrize(("kind", "rule"), [(kind, rule) for kind, rules in KINDS.items() for rule in rules])
def test_parts_of_figures_are_named_by_what_they_show(kind, rule):
    (part,) = re.findall(rule, WIDGETS)
    assert f"var(--lf-{kind})" in part


@pytest.mark.parametrize(
    ("module", "kinds"),
    [("lens", {"stream", "norm"}), ("patches", {"marked"}), ("machine", {"marked"}), ("heat", {"weights", "norm"})],
)
def test_modules_take_colours_by_what_they_show(module, kinds):
    """None of them names a hue, or a colour, which would be that of something else elsewhere."""
    text = (ROOT / "widgets" / f"{module}.mjs").read_text("utf-8")
    assert re.findall(r"--lf-hue-\d|#[0-9a-f]{6}\b", text) == []
    assert kinds <= set(re.findall(r"--lf-(\w+)", text)) | set(re.findall(r'"(stream|norm)"', text))


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_boxes_of_the_machine_read_on_their_ground(mode):
    """A label is 70 % the colour of its kind and the rest ink, on 16 % of that colour and the rest paper."""
    site = properties(STYLE, "pf")[mode]

    def mix(one, other, share):
        parts = [[int(colour[start : start + 2], 16) for start in (1, 3, 5)] for colour in (one, other)]
        return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in zip(*parts, strict=True))

    for kind in [*HUES, "stream", "marked"]:
        assert contrast(mix(site[kind], site["ink"], 0.7), mix(site[kind], site["paper"], 0.16)) >= 4.5, kind


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_numbers_read_on_heat_maps_which_have_the_colours_of_neither_queries_nor_keys(mode):
    figures = properties(WIDGETS, "lf")[mode]
    for name in ("plus", "minus"):
        assert contrast(figures["ink"], figures[name]) >= 4.5
        nearest = min(range(1, 6), key=lambda n: distance(figures[name], figures[f"hue-{n}"]))
        assert nearest == {"plus": 4, "minus": 5}[name]  # weights, and the hue that means least


def distance(one: str, other: str) -> float:
    """How far two colours are from each other in hue."""
    hues = [colorsys.rgb_to_hsv(*(int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0] for c in (one, other)]
    return min(abs(hues[0] - hues[1]), 1 - abs(hues[0] - hues[1]))


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


def test_fonts_are_the_ones_that_the_style_names():
    files = {file.name for file in (ROOT / "_static" / "fonts").glob("*.woff2")}
    assert set(re.findall(r"fonts/([\w-]+\.woff2)", STYLE)) == files
    assert sum((ROOT / "_static" / "fonts" / file).stat().st_size for file in files) < 150_000
    assert "SIL OPEN FONT LICENSE" in (ROOT / "_static" / "fonts" / "OFL.txt").read_text("utf-8")


def test_fonts_have_the_ranges_that_the_style_names():
    """The script that makes the fonts and the style that serves them say the same."""
    script = ast.parse((ROOT / "tools" / "subset_fonts.py").read_text("utf-8"))
    (made,) = [node.value for node in script.body if isinstance(node, ast.Assign) and "RANGES" in ast.unparse(node)]
    assert set(re.findall(r"unicode-range: ([^;]+);", STYLE)) == set(ast.literal_eval(made).values())
